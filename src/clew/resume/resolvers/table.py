"""The resolvers in the order in which they are asked, the most specific first. Each is imported when it is asked.

Those of other packages, by the entry points of the group `clew.resolvers` in the order of their names, come before the
last: a form of their own never hides one of these, and no title hides theirs.
"""

from __future__ import annotations

RESOLVERS: dict[str, str] = {
    "url": "clew.resume.resolvers.url:resolve",
    "path": "clew.resume.resolvers.path:resolve",
    "id": "clew.resume.resolvers.ids:resolve",
    "keyword": "clew.resume.resolvers.keyword:resolve",
    "project:": "clew.resume.resolvers.project:resolve",
    "title:": "clew.resume.resolvers.title:resolve",
    "tag:": "clew.resume.resolvers.tag:resolve",
    "label:": "clew.resume.resolvers.marks:label",
    "owner:": "clew.resume.resolvers.marks:owner",
    "workspace:": "clew.resume.resolvers.marks:workspace",
    "branch:": "clew.resume.resolvers.branch:resolve",
    "pr:": "clew.resume.resolvers.pull_request:resolve",
}

LAST: dict[str, str] = {"exact title": "clew.resume.resolvers.exact:resolve"}

ENTRY_POINTS = "clew.resolvers"
