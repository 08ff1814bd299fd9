"""The flow on one page: documents -> fingerprints -> pairs -> clusters -> decisions -> kept documents.

No session, no reading and no writing here: `store` is called with each finished table and gives it back in a form whose
lineage is cut (a written table, or a checkpoint), so that no stage runs twice. `discard` is called with the name of a table
between stages once it is not needed any more; `finished` gives a table that an earlier run has made, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.plan import Sample, SearchPlan, plan_search
from simhash_udf.settings import Settings
from simhash_udf.stages.clusters import clusters, count_dropped
from simhash_udf.stages.components import Discard, Store
from simhash_udf.stages.decisions import by_source, decisions, in_order, keep_columns, kept, with_references
from simhash_udf.stages.documents import beginning, documents, usable_rows
from simhash_udf.stages.fingerprints import fingerprints
from simhash_udf.stages.guards import check_expected_pairs, check_ids, check_number_of_pairs, check_removed
from simhash_udf.stages.nodes import count_pairs_of_nodes, edges, members, nodes, searched_fingerprints
from simhash_udf.stages.pairs import count_pairs_between, pairs, with_sizes
from simhash_udf.stages.radius import within_radius
from simhash_udf.stages.references import near_references
from simhash_udf.stages.sample import sample
from simhash_udf.stages.search import search
from simhash_udf.stages.verification import with_estimated_similarity, with_similarity
from simhash_udf.tables import column

OnPlan = Callable[[SearchPlan, DataFrame], None]
Finished = Callable[[str], DataFrame | None]

SAMPLED_DOCUMENTS = 1 << 16
BROADCAST_NODES = 1_000_000


@dataclass(frozen=True)
class Graph:
    """Which documents are near each other: `nodes` stand for documents, `members` has the node of each, `edges` join nodes.

    `unverified` are the edges that were left out, each with its similarity, where `settings.verify` asks for a check.
    """

    nodes: DataFrame
    members: DataFrame
    edges: DataFrame
    unverified: DataFrame | None = None


@dataclass(frozen=True)
class Pairs:
    """What the search found: pairs of fingerprints, the graph and pairs of documents; `plan` is how it was to run."""

    plan: SearchPlan
    fingerprint_pairs: DataFrame
    graph: Graph
    pairs: DataFrame


@dataclass(frozen=True)
class NearDuplicates:
    """What was found in a corpus: DataFrames in the schema of `simhash_udf.tables`.

    `kept` has the columns of the corpus; `plan` is how the search was to run; `counts` has what the tables do not tell, by name;
    `sources` is there where the settings name a source column.
    """

    fingerprints: DataFrame
    fingerprint_pairs: DataFrame
    pairs: DataFrame
    clusters: DataFrame
    decisions: DataFrame
    kept: DataFrame
    plan: SearchPlan
    counts: dict[str, Any]
    sources: DataFrame | None = None


def apart(name: str, store: Store, discard: Discard) -> tuple[Store, Discard]:
    """The same places for tables of a stage that runs more than once, under names of its own."""
    return lambda table, frame: store(f"{name}_{table}", frame), lambda table: discard(f"{name}_{table}")


def no_watch(_plan: SearchPlan, _fingerprints: DataFrame) -> None:
    """Nobody looks at the plan before the search runs."""


def nothing_finished(_name: str) -> None:
    """No table is there from an earlier run."""


def discard_nothing(name: str) -> None:
    """Leave a table to whoever clears the place it is in."""


def deduplicate(
    source: DataFrame,
    settings: Settings,
    store: Store,
    on_plan: OnPlan = no_watch,
    *,
    discard: Discard = discard_nothing,
    finished: Finished = nothing_finished,
    references: DataFrame | None = None,
) -> NearDuplicates:
    """Find the near-duplicates of a corpus and decide which documents stay.

    Args:
        references: as `near_references` takes them. Documents near one of them are dropped, and the others are compared.

    Raises:
        InputError: a column cannot serve, there is no document, or two documents have one id.
        TooManyPairs: more pairs than `settings.max_pairs`.
        NotConverged: the graph of the pairs is larger than the rounds of clustering could make small enough.
        TooManyRemoved: a larger share of the documents than `settings.max_removed` would be dropped.
    """
    usable = usable_rows(source, settings)
    made = fingerprint_documents(source, settings, store)
    met, every = None, made
    if references is not None:
        met = store("near_references", near_references(made, references, settings, store))
        made = made.join(met.select("id"), "id", "left_anti")
    found = find_pairs(made, settings, store, on_plan, usable, discard=discard, finished=finished)
    graph = found.graph
    columns = keep_columns(usable, settings.id_column, settings.keep_order)
    chained = finished("clusters") if settings.max_radius == 64 else finished("chained")
    if chained is None:
        chained = clusters(graph.members, graph.edges, store, discard)
    counts: dict[str, Any] = {}
    if settings.min_features:
        counts["documents_of_few_features"] = made.where(F.col("features").between(1, settings.min_features - 1)).count()
    if settings.max_radius < 64:
        chained = store("chained", chained)
        counts["dropped_without_max_radius"] = chained.count() - chained.select("cluster").distinct().count()
        chained = within_radius(*in_order(made, chained, settings.keep_order, columns), settings.max_radius)
    clustered = store("clusters", chained)
    verified = (graph.members, graph.edges) if settings.verifies else None
    ordered = in_order(made, clustered, settings.keep_order, columns)
    decided = decisions(made, *ordered, settings.max_distance, verified)
    if met is not None:
        decided = with_references(decided, met)
        counts["in_references"] = {row["reference"]: row["count"] for row in met.groupBy("reference").count().collect()}
    decided = store("decisions", decided)
    sources = None
    if settings.source_column:
        sources = store("sources", by_source(usable, decided, settings.id_column, settings.source_column))
    check_removed(decided, settings.max_removed)
    if settings.also_at:
        counts["dropped_at"] = {
            distance: count_dropped(
                graph.nodes, graph.edges.where(F.col("distance") <= distance), *apart(f"at_{distance}", store, discard)
            )
            for distance in settings.smaller_distances
        }
    if graph.unverified is not None:
        counts["failed_verification"] = count_pairs_between(with_sizes(graph.unverified, graph.nodes, "node"))
    staying = store("kept", kept(usable, decided, settings.id_column))
    return NearDuplicates(every, found.fingerprint_pairs, found.pairs, clustered, decided, staying, found.plan, counts, sources)


def fingerprint_documents(source: DataFrame, settings: Settings, store: Store) -> DataFrame:
    """The table `fingerprints` of a corpus, each id once."""
    made = store("fingerprints", fingerprints(documents(source, settings), settings))
    check_ids(made, settings.id_column)
    return made


def find_pairs(
    made: DataFrame,
    settings: Settings,
    store: Store,
    on_plan: OnPlan = no_watch,
    usable: DataFrame | None = None,
    *,
    discard: Discard = discard_nothing,
    finished: Finished = nothing_finished,
) -> Pairs:
    """How the search was planned, pairs of fingerprints, the graph of the documents, and the table `pairs`.

    Args:
        made: the table `fingerprints`.
        on_plan: called with the plan and the table `fingerprints` before the search.
        discard, finished: of a table between stages, and of any by its name, as `Run` has them.
        usable: the rows that documents were made of, for `settings.verify`.
    """
    all_nodes = nodes(made, settings, store)
    groups = searched_fingerprints(all_nodes)
    if settings.tells_nodes_apart:
        groups = store("groups", groups)
    plan = plan_of(groups, settings)
    on_plan(plan, made)
    if not settings.searches_spanning:
        check_expected_pairs(groups, all_nodes, plan, settings)
    near = search(groups, settings.max_distance, spanning=settings.searches_spanning, plan=plan)
    found = store("fingerprint_pairs", with_sizes(near, groups))
    if not settings.searches_spanning:
        check_number_of_pairs(count_pairs_of_nodes(found, all_nodes, settings), settings)
    graph = Graph(all_nodes, members(made, all_nodes, settings), edges(found, all_nodes, settings))
    if settings.tells_nodes_apart:
        graph = Graph(all_nodes, store("members", graph.members), store("edges", graph.edges))
    if settings.verifies:
        assert usable is not None
        graph = verified(graph, usable, settings, store, discard, finished("measured_edges"))
    spanning = settings.pairs == "spanning"
    return Pairs(plan, found, graph, store("pairs", pairs(graph.members, graph.edges, spanning=spanning)))


def verified(
    graph: Graph, usable: DataFrame, settings: Settings, store: Store, discard: Discard, measured: DataFrame | None = None
) -> Graph:
    """The graph with those edges alone whose texts are as similar as the settings ask, and with the similarity of each.

    Args:
        measured: the edges with their similarity, where an earlier run has measured them.
    """
    if measured is None:
        if settings.sketches:
            measured = with_estimated_similarity(graph.edges, graph.nodes)
        else:
            measured = with_similarity_of_texts(graph, usable, settings, store, discard)
        measured = store("measured_edges", measured)
        discard("unverified_gram_sets")
    alike = F.col("similarity") >= settings.min_similarity
    return Graph(graph.nodes, graph.members, measured.where(alike), measured.where(~alike))


def with_similarity_of_texts(graph: Graph, usable: DataFrame, settings: Settings, store: Store, discard: Discard) -> DataFrame:
    """The edges with the similarity of their texts, which are read again for the nodes that have an edge."""
    ends = [graph.edges.select(F.col(name).alias("node")) for name in ("node_a", "node_b")]
    concerned = ends[0].unionAll(ends[1]).distinct().join(graph.nodes.select("node", F.col("id").alias("told")), "node", "inner")
    concerned = store("checked_nodes", concerned)
    if concerned.count() <= BROADCAST_NODES:
        # Else the texts of the whole corpus are shuffled to meet the few that are wanted.
        concerned = F.broadcast(concerned)
    texts = usable.select(column(settings.id_column).alias("id"), beginning(settings).alias("text"))
    texts = texts.join(concerned, F.col("id") == F.col("told"), "inner").select("node", "text")
    return with_similarity(
        graph.edges,
        texts,
        *apart("unverified", store, discard),
        measure=settings.verify,
        unit=settings.verify_unit,
        ngram=settings.verify_ngram,
    )


def plan_of(fingerprints: DataFrame, settings: Settings) -> SearchPlan:
    """How the search of the fingerprints of a table will run, by a sample of them."""
    taken = sample(fingerprints, settings.max_distance)
    return plan_search(taken.rows, settings.max_distance, sample=taken, spanning=settings.searches_spanning)


def plan_of_corpus(source: DataFrame, settings: Settings) -> tuple[SearchPlan, DataFrame]:
    """How the search of a corpus would run, from about 65,000 of its documents, and their table `fingerprints`.

    Which documents these are depends on their ids alone. Copies are rarer among them than in the whole corpus, so the number of
    distinct fingerprints is an upper bound.
    """
    every = documents(source, settings)
    number = every.count()
    some = every
    if number > SAMPLED_DOCUMENTS:
        some = every.where(F.xxhash64("id") < F.lit(round(SAMPLED_DOCUMENTS / number * 2**64) - 2**63))
    made = fingerprints(some, settings).localCheckpoint()
    taken = sample(made.where(F.col("features") >= settings.min_features), settings.max_distance)
    growth = number / max(1, made.count())
    rows = round(taken.rows * growth)
    whole = Sample(rows, taken.fingerprints, taken.near_pairs * growth**2)
    return plan_search(rows, settings.max_distance, sample=whole, spanning=settings.searches_spanning), made
