"""Which session is meant: by what a person typed (`resolvers`), or without a word (`policies`)."""
