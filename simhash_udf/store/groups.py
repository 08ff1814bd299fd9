"""How the clusters of a store change: new documents join them or merge them, and documents that leave split them.

Both are settled in the same way: documents that belong together now are a component; its name is the smallest of the names that
its parts had, its keeper is chosen, and whatever is not as it was is written anew.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.fold import hamming
from simhash_udf.errors import IncompleteResult
from simhash_udf.pipeline import Graph, apart, find_pairs, verified
from simhash_udf.settings import Settings
from simhash_udf.stages.clusters import clusters
from simhash_udf.stages.components import Discard, Store, connected_components
from simhash_udf.stages.decisions import order_of
from simhash_udf.stages.guards import check_number_of_pairs
from simhash_udf.stages.nodes import edges, members, nodes, searched_fingerprints
from simhash_udf.stages.pairs import with_sizes
from simhash_udf.stages.search import search_new
from simhash_udf.stages.verification import estimated_similarity
from simhash_udf.store.new_pairs import count_new_pairs, new_pairs

BROADCAST_ROWS = 1_000_000


class Growth(NamedTuple):
    """What new documents change.

    `settled` has the documents of all clusters that the new ones are in, `pairs` those with a new document, `searched` the new
    ones' fingerprints, and `between_stored` how many pairs of two stored fingerprints the search gave: 0 unless it is wrong.
    """

    settled: DataFrame
    pairs: DataFrame
    searched: DataFrame
    between_stored: int


def settled(documents: DataFrame, settings: Settings) -> DataFrame:
    """Documents with the cluster and the decision that their component gives them.

    Args:
        documents: whole components: the columns of the table `fingerprints` of a store, `component`, `name`: what each would call
            its cluster, and `is_old`: whether the store had it before.
        settings: keep, old and verify are used.

    Returns:
        The documents with `cluster`, `kept` as they are now, `was_cluster`, `was_kept`, and of the cluster `size` BIGINT,
        `first_batch`, `last_batch`, `keeper`, `keeper_fingerprint`, and with sketches `keeper_sketch`.
    """
    order = order_of(documents, settings.keep_order)
    stays = F.coalesce("kept", F.lit(False))
    never_dropped = settings.old == "never-dropped"
    first = F.struct(~stays.alias("dropped"), order.alias("order")) if never_dropped else F.struct(order.alias("order"))
    sketch = ["sketch"] if settings.sketches else []
    best = F.min_by(F.struct("id", "fingerprint", *sketch), first)
    grouped = documents.groupBy("component").agg(
        F.min("name").alias("now_cluster"),
        F.count("*").alias("size"),
        F.min_by("batch", "entered").alias("first_batch"),
        F.max_by("batch", "entered").alias("last_batch"),
        best.alias("best"),
    )
    kept = F.col("id") == F.col("keeper")
    if never_dropped:
        kept = kept | stays
    told = [F.col(f"best.{name}").alias(f"keeper_{name}") for name in ("fingerprint", *sketch)]
    joined = documents.join(grouped, "component", "inner").select("*", F.col("best.id").alias("keeper"), *told).drop("best")
    return joined.withColumns(
        {"was_cluster": F.col("cluster"), "was_kept": F.col("kept"), "cluster": F.col("now_cluster"), "kept": kept}
    ).drop("component", "name", "now_cluster")


def changed(documents: DataFrame) -> DataFrame:
    """Those of `settled` that are new, or whose cluster or decision is another than it was."""
    return documents.where(~F.col("is_old") | ~F.col("cluster").eqNullSafe(F.col("was_cluster")) | flipped())


def flipped() -> Column:
    """Whether the store had decided otherwise of a document of `settled`."""
    return F.coalesce(F.col("kept") != F.col("was_kept"), F.lit(False))


def decided(documents: DataFrame, settings: Settings) -> DataFrame:
    """The documents of `settled` with `cluster`, `keeper`, `distance` and `reason` as the table `decisions` has them."""
    alone = F.col("size") == 1
    distance = hamming("fingerprint", "keeper_fingerprint").cast("int")
    near = distance <= settings.max_distance
    if settings.sketches:
        near = near & (estimated_similarity("sketch", "keeper_sketch") >= settings.min_similarity)
    is_keeper = F.col("id") == F.col("keeper")
    reason = (
        F.when(alone, "unique")
        .when(is_keeper, "keeper")
        .when(F.col("kept"), "kept before")
        .when(~near, "chained")
        .when(distance == 0, "same fingerprint")
        .otherwise("within distance")
    )
    return documents.withColumns(
        {
            "reason": reason,
            "distance": F.when(~alone, F.when(F.col("kept"), 0).otherwise(distance)),
            "keeper": F.when(~alone, F.when(F.col("kept"), F.col("id")).otherwise(F.col("keeper"))),
            "cluster": F.when(~alone, F.col("cluster")),
        }
    )


def grown(
    new: DataFrame, stored: DataFrame, searched: DataFrame | None, settings: Settings, store: Store, discard: Discard
) -> Growth:
    """Find what is near new documents, and settle the clusters that they are in.

    Args:
        new: the documents to compare: the columns of the table `fingerprints` of a store, `cluster` NULL, and `kept` too unless
            an earlier decision is to stay; all have a fingerprint, and none has the id of a stored one.
        stored: those that the store has.
        searched: the distinct fingerprints of the stored documents that may be near others, or more; None where there is none.
        settings: those that all fingerprints were made with.
        store, discard: as for `find_pairs`.

    Raises:
        TooManyPairs, NotConverged: as `find_pairs` and `clusters`.
        IncompleteResult: the search gave a pair of two stored fingerprints.
    """
    enough = new.where(F.col("features") >= settings.min_features)
    own = store("new_fingerprints", enough.select("fingerprint").distinct())
    others = own.limit(0) if searched is None else searched
    near = store("near_fingerprints", search_new(own, others, settings.max_distance, spanning=settings.searches_spanning))
    ends = near.select(F.col("fingerprint_a").alias("fingerprint")).unionAll(near.select("fingerprint_b"))
    wanted = store("wanted_fingerprints", ends.unionAll(new.select("fingerprint")).distinct())
    between_stored = near.join(own.toDF("fingerprint_a"), "fingerprint_a", "left_anti")
    between_stored = between_stored.join(own.toDF("fingerprint_b"), "fingerprint_b", "left_anti")
    against = between_stored.count()
    if against:
        raise IncompleteResult(
            f"the search compared {against:,} pairs of stored fingerprints, which it must not: nothing is written"
        )
    touched = stored.where("compared").join(small(wanted), "fingerprint", "left_semi")
    told = [name for name in new.columns if name not in ("kept", "batch", "entered", "compared", "step")]
    documents = store("touched", touched.select(told).unionByName(new.select(told)))
    all_nodes = nodes(documents, settings, store)
    member = store("members", members(documents, all_nodes, settings).join(documents.select("id", "cluster"), "id", "inner"))
    found = with_sizes(near, searched_fingerprints(all_nodes))
    graph = Graph(all_nodes, member, store("edges", edges(found, all_nodes, settings)))
    if settings.sketches:
        graph = verified(graph, documents, settings, store, discard)
    spanning = settings.pairs == "spanning"
    if not spanning:
        check_number_of_pairs(
            count_new_pairs(member, graph.edges), settings, "the new documents make, with each other and stored ones,"
        )
    # Members of a cluster that are met belong together, by whatever is between them.
    firsts = member.where(F.col("cluster").isNotNull()).groupBy("cluster").agg(F.min("node").alias("node_a"))
    links = member.join(firsts, "cluster", "inner").select("node_a", F.col("node").alias("node_b")).where("node_a < node_b")
    joined = graph.edges.select("node_a", "node_b").unionAll(links.distinct())
    components = connected_components(store("links", joined), store, discard)
    placed = member.join(components, "node", "left").select("id", "cluster", F.coalesce("component", "node").alias("component"))
    placed = store("placed", placed)
    concerned = placed.where(F.col("cluster").isNull()).select("component").distinct()
    met = store(
        "met_clusters",
        placed.where(F.col("cluster").isNotNull())
        .join(concerned, "component", "left_semi")
        .select("cluster", "component")
        .distinct(),
    )
    old = stored.where("compared").join(small(met), "cluster", "inner")
    old = old.withColumns({"name": F.col("cluster"), "is_old": F.lit(True)})
    fresh = new.join(placed.where(F.col("cluster").isNull()).select("id", "component"), "id", "inner")
    fresh = fresh.withColumns({"name": F.col("id"), "is_old": F.lit(False)})
    result = store("settled", settled(old.unionByName(fresh), settings))
    return Growth(result, new_pairs(member, graph.edges, spanning=spanning), own, against)


def regrouped(
    gone: DataFrame, incoming: DataFrame | None, stored: DataFrame, settings: Settings, store: Store, discard: Discard
) -> DataFrame:
    """What is left of the clusters that documents leave, settled anew: it may fall apart, or need another keeper.

    Args:
        gone: `id` of the documents that leave.
        incoming: `id` of documents that come: a cluster that is called as one of them, though that is not in it, gets another
            name, since the document would be a cluster of that name itself.
        stored: the documents of the store.
        settings, store, discard: as for `grown`.

    Returns:
        As `settled`, of the documents that stay.
    """
    concerned = stored.join(small(gone), "id", "left_semi").select("cluster")
    taken = gone if incoming is None else incoming.select("id").unionAll(gone.select("id"))
    names = small(taken.select(F.col("id").alias("cluster")).distinct())
    renamed = stored.join(names, "cluster", "left_semi").select("cluster") if incoming is not None else concerned.limit(0)
    concerned = store("left_clusters", concerned.unionAll(renamed).where(F.col("cluster").isNotNull()).distinct())
    staying = stored.join(small(concerned), "cluster", "left_semi").join(small(gone), "id", "left_anti")
    staying = store("staying", staying)
    places = apart("regrouped", store, discard)
    spanning = dataclasses.replace(settings, pairs="spanning")
    if staying.isEmpty():
        parts = staying.select("id", F.col("id").alias("part"))
    else:
        graph = find_pairs(staying, spanning, places[0], usable=staying, discard=places[1]).graph
        found = clusters(graph.members, graph.edges, *places)
        parts = staying.select("id").join(found, "id", "left").select("id", F.coalesce("cluster", "id").alias("part"))
    parted = staying.join(store("parts", parts), "id", "inner")
    heirs = parted.groupBy("cluster").agg(F.min("part").alias("heir"))
    if incoming is not None:
        heirs = heirs.join(incoming.select(F.col("id").alias("cluster")).distinct(), "cluster", "left_anti")
    # The part with the smallest id keeps the name, and each other one is called by its own smallest id.
    named = parted.join(heirs, "cluster", "left").withColumn(
        "name", F.when(F.col("part") == F.col("heir"), F.col("cluster")).otherwise(F.col("part"))
    )
    named = named.withColumn("is_old", F.lit(True)).withColumn("component", F.col("part")).drop("part", "heir")
    return store("regrouped", settled(named, settings))


def small(rows: DataFrame) -> DataFrame:
    """Rows that are given to every task of a join where they are few, so that the store is not shuffled to meet them."""
    return F.broadcast(rows) if rows.count() <= BROADCAST_ROWS else rows
