"""What all batches of a store have in common: settings, and types of the columns that depend on the input."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from simhash_udf.errors import InputError, SettingsError
from simhash_udf.settings import Settings
from simhash_udf.store.manifest import StoreManifest

SHARED_KNOBS = (
    "features_column", "fingerprint", "unit", "ngram", "weighting", "max_distance", "pairs", "within", "min_features", "verify",
    "min_similarity", "verify_unit", "verify_ngram", "keep", "old",
)  # fmt: skip


def shared_settings(settings: Settings) -> dict[str, Any]:
    """Those settings that all batches share, by their flags' names."""
    return settings.as_dict(SHARED_KNOBS)


def check_shared(store: StoreManifest | None, settings: Settings) -> None:
    """Raise SettingsError unless a batch has the settings that the store was made with; the message says how to migrate."""
    if store is None:
        return
    given = shared_settings(settings)
    others = {name: (store.settings.get(name), value) for name, value in given.items() if store.settings.get(name) != value}
    if others:
        told = ", ".join(f"{name} is {value!r} and the store's {stored!r}" for name, (stored, value) in others.items())
        flags = " ".join(f"--{name} {value!r}" for name, (_, value) in others.items())
        raise SettingsError(
            f"{told}; fingerprints and decisions of different settings cannot be in one store. Give those of the store, or make "
            f"it anew from the texts: jobs/migrate.py --store {settings.store} --input TEXTS {flags}"
        )
    if settings.store_tables and settings.store_tables != store.catalog:
        raise SettingsError(
            f"store-tables is {settings.store_tables!r} and that of the store {settings.store!r} {store.catalog!r}; where its "
            "tables are is said when it is made: leave out --store-tables"
        )


def columns_of(types: dict[str, str]) -> dict[str, str]:
    """Those of the columns of the table `fingerprints`, with their types, that depend on the input."""
    return {name: types[name] for name in types if name in ("id", "group") or name.startswith("keep_")}


def check_columns_of_store(store: StoreManifest | None, fingerprints: DataFrame, settings: Settings) -> None:
    """Raise InputError unless the columns of a batch have the types that they have in the store."""
    if store is None:
        return
    named = {"id": settings.id_column, "group": settings.within}
    named |= {f"keep_{at}": name for at, (name, _) in enumerate(settings.keep_order)}
    for name, kind in columns_of(dict(fingerprints.dtypes)).items():
        if store.columns.get(name) != kind:
            raise InputError(
                f"column {named[name]!r} of the input is {kind}, and in the store {settings.store!r} it is "
                f"{store.columns.get(name)}; cast it to that"
            )
