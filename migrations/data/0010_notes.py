"""Agent memory: notes in versions, what waits for a person, and how much each has written within the hour.

The texts are readable: they are about no person, and are searched by PostgreSQL. `note_books` counts a space's changes,
so that whoever keeps a block knows whether it still holds.
"""

from alembic import op

from migrations.guard import guard

revision = "0010"
down_revision = "0009"

_KINDS = "CHECK (kind IN ('procedure', 'tool_note', 'process_note', 'pitfall'))"
_VISIBILITIES = "CHECK (visibility IN ('source', 'vendor', 'space'))"

_STATEMENTS = (
    """
    CREATE TABLE notes (
        id uuid PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        agent text NOT NULL,
        vendor text,
        status text NOT NULL DEFAULT 'active' CONSTRAINT note_status CHECK (status IN ('active', 'retired', 'quarantined')),
        version integer NOT NULL DEFAULT 1,
        digest bytea NOT NULL,
        evidence_kind text CONSTRAINT note_evidence CHECK (evidence_kind IN ('conversation', 'task')),
        evidence bytea,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        revised_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        retired_at timestamptz
    )
    """,
    "CREATE INDEX notes_in_order ON notes (space_id, created_at, id)",
    "CREATE INDEX notes_of_agent ON notes (space_id, agent, status)",
    "CREATE INDEX notes_by_digest ON notes (space_id, digest) WHERE status = 'active'",
    # `tokens` of its row in a block. `retired_at`: since when another version stands in its place, or the note is retired.
    f"""
    CREATE TABLE note_versions (
        space_id bigint NOT NULL REFERENCES spaces (id),
        note_id uuid NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
        version integer NOT NULL,
        kind text NOT NULL CONSTRAINT version_kind {_KINDS},
        title text NOT NULL,
        body text NOT NULL,
        tags text[] NOT NULL,
        visibility text NOT NULL CONSTRAINT version_visibility {_VISIBILITIES},
        search tsvector NOT NULL,
        tokens integer NOT NULL,
        actor text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        retired_at timestamptz,
        PRIMARY KEY (note_id, version)
    )
    """,
    "CREATE INDEX note_versions_search ON note_versions USING gin (search)",
    "CREATE INDEX note_versions_retired ON note_versions (space_id, retired_at) WHERE retired_at IS NOT NULL",
    f"""
    CREATE TABLE proposals (
        id uuid PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        origin text NOT NULL CONSTRAINT proposal_origin
            CHECK (origin IN ('human_only', 'space_visibility', 'models_layer_down', 'distilled')),
        agent text NOT NULL,
        vendor text,
        kind text NOT NULL CONSTRAINT proposal_kind {_KINDS},
        title text NOT NULL,
        body text NOT NULL,
        tags text[] NOT NULL,
        visibility text NOT NULL CONSTRAINT proposal_visibility {_VISIBILITIES},
        digest bytea NOT NULL,
        evidence_kind text CONSTRAINT proposal_evidence CHECK (evidence_kind IN ('conversation', 'task')),
        evidence bytea,
        conversation_id bigint,
        note_id uuid,
        note_version integer,
        proposer bytea NOT NULL,
        actor text NOT NULL,
        state text NOT NULL DEFAULT 'pending' CONSTRAINT proposal_state
            CHECK (state IN ('pending', 'approved', 'rejected', 'expired', 'quarantined')),
        reason_code text,
        decided_by text,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        decided_at timestamptz
    )
    """,
    "CREATE INDEX proposals_in_order ON proposals (space_id, created_at, id)",
    "CREATE INDEX proposals_waiting ON proposals (space_id, digest) WHERE state = 'pending'",
    "CREATE INDEX proposals_of_conversation ON proposals (conversation_id) WHERE conversation_id IS NOT NULL",
    """
    CREATE TABLE note_allowances (
        space_id bigint NOT NULL REFERENCES spaces (id),
        whose text NOT NULL,
        what text NOT NULL CONSTRAINT allowance_of CHECK (what IN ('writes', 'refusals')),
        spent timestamptz[] NOT NULL DEFAULT '{}',
        PRIMARY KEY (space_id, whose, what)
    )
    """,
    """
    CREATE TABLE note_books (
        space_id bigint PRIMARY KEY REFERENCES spaces (id),
        revision bigint NOT NULL DEFAULT 1
    )
    """,
    # A read of notes that changed nothing is one call, so that it costs one row and one commit, and no round trip more.
    # $7 is the revision of the block that is kept, $8 whose the agent was then, $10 whose its key is.
    """
    CREATE FUNCTION deliver_notes_again(uuid, bigint, text, text, jsonb, jsonb, bigint, text, text, text) RETURNS boolean
    LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM set_config('afterturn.space', $2::text, true);
        INSERT INTO receipts (id, space_id, actor, action, ids, counts)
        SELECT $1, $2, $3, $4, $5, $6 FROM spaces s
        WHERE s.id = $2 AND coalesce((s.features->>'agent_memory')::bool, false)
            AND $7 = coalesce((SELECT revision FROM note_books WHERE space_id = $2), 0)
            AND $8 IS NOT DISTINCT FROM coalesce((SELECT vendor FROM agents WHERE space_id = $2 AND agent = $9), $10);
        RETURN FOUND;
    END $$
    """,
)

# A proposal that nobody decided is over after 30 days.
_AGES = {
    "notes": "retired_at",
    "note_versions": "retired_at",
    "proposals": "coalesce(decided_at, created_at + interval '30 days')",
}


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("notes", "note_versions", "proposals", "note_allowances", "note_books")
    for table, age in _AGES.items():
        op.execute(f"""
            CREATE POLICY live ON {table} AS RESTRICTIVE FOR SELECT USING (
                {age} IS NULL OR {age} > (SELECT live_after('notes')))
        """)
