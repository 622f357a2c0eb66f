"""The registry of data sets: everything about people that this deployment keeps, in the order in which it is erased.

What points at other rows comes before them. A table of no data set says here why it holds nothing personal.
"""

import hashlib
import json
from collections.abc import Mapping

from models.agent_data import AGENTS
from models.api_key_data import API_KEYS
from models.conversation_data import CONVERSATIONS
from models.dataset import DataSet
from models.distillation_data import DISTILLATIONS
from models.export_data import EXPORTS
from models.log_data import GENERATIONS, LOGS
from models.model_answer_data import MODEL_ANSWERS
from models.name_data import NAMES
from models.note_data import NOTE_ALLOWANCES, NOTE_VERSIONS, NOTES, PROPOSALS
from models.observation_data import OBSERVATIONS
from models.pseudonym_data import PSEUDONYMS
from models.quarantine_data import QUARANTINE
from models.state_data import STATES
from models.subject_data import HANDLES, SUBJECTS
from models.turn_data import TURNS
from models.work_data import MODEL_USAGE, WORK

DATA_SETS: tuple[DataSet, ...] = (
    EXPORTS,
    DISTILLATIONS,
    PROPOSALS,
    NOTE_VERSIONS,
    NOTES,
    NOTE_ALLOWANCES,
    STATES,
    MODEL_ANSWERS,
    OBSERVATIONS,
    QUARANTINE,
    TURNS,
    GENERATIONS,
    CONVERSATIONS,
    MODEL_USAGE,
    WORK,
    API_KEYS,
    AGENTS,
    LOGS,
    NAMES,
    PSEUDONYMS,
    HANDLES,
    SUBJECTS,
)

NOTHING_PERSONAL: Mapping[str, str] = {
    "alembic_version": "the schema's revision",
    "spaces": "a tenant's name and switches, set by its operator",
    "receipts": "opaque ids and counts: what led from an id to a person is destroyed by the erasure",
    "retention": "how long a space keeps what",
    "holds": "opaque ids of those who must not be deleted, and ends before they do",
    "seals": "hashes over receipts, and signatures",
    "erasures": "ids that lead to nobody any more, and how many rows went",
    "object_types": "what fields an agent's state has, declared by an operator",
    "state_scope_keys": "opaque ids of keys",
    "links": "opaque ids of subjects that are said to be one person; goes with either",
    "webhooks": "endpoints that an operator named, sealed under the space's key",
    "deliveries": "which announcement reached which endpoint",
    "note_books": "how often a space's agent notes changed",
    "announcements": "ids of what subscribers are told about",
}


def claimed() -> dict[str, set[str]]:
    """By table: the columns that some data set describes."""
    tables: dict[str, set[str]] = {}
    for data_set in DATA_SETS:
        for table, columns in data_set.tables.items():
            tables.setdefault(table, set()).update(columns)
    return tables


def named(name: str) -> DataSet:
    """The data set of that name; LookupError where there is none."""
    for data_set in DATA_SETS:
        if data_set.name == name:
            return data_set
    raise LookupError(name)


def version() -> str:
    """Tells registries apart: a hash of what each data set says that it holds, and of what is left out and why."""
    sets = {one.name: {table: dict(columns) for table, columns in one.tables.items()} for one in DATA_SETS}
    whole = json.dumps([sets, dict(NOTHING_PERSONAL)], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]
