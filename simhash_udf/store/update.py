"""Documents that come and that leave -> what becomes of the clusters of a store."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.settings import Settings
from simhash_udf.stages.components import Discard
from simhash_udf.stages.components import Store as StoreFunction
from simhash_udf.store.groups import Growth, grown, regrouped, small
from simhash_udf.store.views import Store


class Update(NamedTuple):
    """What a batch changes.

    `documents` are those of all clusters concerned, as `settled` has them, compared with the store as it was, and with `split`:
    whether one left its cluster as that fell apart; `searched` are the fingerprints that the store did not know.
    """

    documents: DataFrame
    searched: DataFrame
    growth: Growth


def updated(
    new: DataFrame,
    incoming: DataFrame,
    gone: DataFrame,
    view: Store | None,
    settings: Settings,
    store: StoreFunction,
    discard: Discard,
) -> Update:
    """What new documents change, after those that they replace have left.

    Args:
        new: as for `grown`.
        incoming: `id` of all documents that come, compared or not.
        gone: `id` of the stored documents that leave.
        view: the store as it is; None where it is new.
        settings, store, discard: as for `grown`.
    """
    if view is None:
        growth = grown(new, new.limit(0), None, settings, store, discard)
        return Update(growth.settled.withColumn("split", F.lit(False)), growth.searched, growth)
    stored, searched = view.fingerprints(), view.searched()
    after = None
    # A cluster can be called as a document that is not in it only where one has left.
    if not gone.isEmpty() or any(version.counts.get("left") for version in view.manifest.versions):
        after = regrouped(gone, incoming, stored, settings, store, discard)
        rest = stored.join(small(gone), "id", "left_anti").join(small(after.select("id")), "id", "left_anti")
        stored = rest.unionByName(after.select(stored.columns))
    growth = grown(new, stored, searched, settings, store, discard)
    documents = growth.settled.withColumn("split", F.lit(False))
    if after is not None:
        documents = store("updated", _since(growth.settled, after))
    unknown = growth.searched
    if searched is not None:
        known = store("searched_before", searched.join(small(unknown), "fingerprint", "left_semi"))
        unknown = unknown.join(known, "fingerprint", "left_anti")
    return Update(documents, unknown, growth)


def _since(grown_documents: DataFrame, after: DataFrame) -> DataFrame:
    """The documents of both, with the cluster and the decision that they had before the first of the two changes."""
    first = after.select(
        "id",
        F.col("was_cluster").alias("first_cluster"),
        F.col("was_kept").alias("first_kept"),
        (F.col("cluster") != F.col("was_cluster")).alias("split"),
    )
    both = grown_documents.unionByName(after.join(grown_documents.select("id"), "id", "left_anti"))
    return (
        both.join(first, "id", "left")
        .withColumns(
            {
                "was_cluster": F.coalesce("first_cluster", "was_cluster"),
                "was_kept": F.coalesce("first_kept", "was_kept"),
                "split": F.coalesce("split", F.lit(False)),
            }
        )
        .drop("first_cluster", "first_kept")
    )
