// Seconds and pairs of Simhash::find_all (simhash-cpp) on a file of 64-bit fingerprints: find_all FILE BLOCKS DISTANCE
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unordered_set>

#include "simhash.h"

int main(int, char** given) {
    std::unordered_set<Simhash::hash_t> fingerprints;
    std::FILE* file = std::fopen(given[1], "rb");
    if (file == nullptr) return 1;
    Simhash::hash_t fingerprint;
    while (std::fread(&fingerprint, sizeof fingerprint, 1, file) == 1) fingerprints.insert(fingerprint);
    std::fclose(file);
    auto began = std::chrono::steady_clock::now();
    auto pairs = Simhash::find_all(fingerprints, std::atoi(given[2]), std::atoi(given[3]));
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::printf("%f %zu\n", took.count(), pairs.size());
}
