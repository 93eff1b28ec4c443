"""The subjects by name, in the order in which they are run. Imported when they are run."""

from __future__ import annotations

SUBJECTS = {
    "decoding": "benchmarks.decoding:measure",
    "conversation": "benchmarks.conversation:measure",
    "truncating": "benchmarks.truncating:measure",
    "streaming": "benchmarks.streaming:measure",
    "appending": "benchmarks.appending:measure",
    "copying": "benchmarks.copying:measure",
    "forking": "benchmarks.forking:measure",
    "inserting": "benchmarks.inserting:measure",
    "attaching": "benchmarks.attaching:measure",
    "resolving": "benchmarks.resolving:measure",
    "starting": "benchmarks.starting:measure",
}
