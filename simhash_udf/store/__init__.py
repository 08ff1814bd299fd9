"""A store of fingerprints that batches are added to: each is compared with all that came before, and none twice."""
