"""The stages, in the order of the flow: documents, fingerprints, search, pairs, clusters, decisions.

Each is a function from DataFrames to a DataFrame, without reading, writing or a session.
"""
