"""Agent state: what its fields are, the state itself field by field, and which states were erased.

Each field is a row, sealed by itself: so it expires, is swept and is given up alone. A scope is kept as a keyed hash; of
`state_scope_keys` the newest makes new ones, and the space's look-up key made those before the first.
"""

from alembic import op

from migrations.guard import guard

revision = "0012"
down_revision = "0011"

_STATEMENTS = (
    """
    CREATE TABLE object_types (
        space_id bigint PRIMARY KEY REFERENCES spaces (id),
        document jsonb NOT NULL,
        version bigint NOT NULL DEFAULT 1,
        changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    """
    CREATE TABLE state_scope_keys (
        space_id bigint NOT NULL REFERENCES spaces (id),
        key_id uuid NOT NULL,
        since timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (space_id, key_id)
    )
    """,
    # `subjects` are all whom it was ever said to be about; `key_id` is the first's, or a key of its own.
    """
    CREATE TABLE states (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        scope_kind text NOT NULL
            CONSTRAINT state_scope CHECK (scope_kind IN ('conversation', 'task', 'object', 'subject')),
        scope bytea NOT NULL,
        agent text NOT NULL,
        version bigint NOT NULL,
        generation uuid NOT NULL,
        key_id uuid NOT NULL,
        subjects uuid[] NOT NULL DEFAULT '{}',
        conversation_id bigint,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        expires_at timestamptz NOT NULL,
        UNIQUE (space_id, scope, agent)
    )
    """,
    "CREATE INDEX states_by_expiry ON states (space_id, expires_at)",
    "CREATE INDEX states_of_subjects ON states USING gin (subjects)",
    "CREATE INDEX states_of_conversation ON states (conversation_id) WHERE conversation_id IS NOT NULL",
    # `size` is what the field costs in the compact JSON of the whole. Without an end of its own it goes with its state.
    """
    CREATE TABLE state_fields (
        space_id bigint NOT NULL REFERENCES spaces (id),
        state_id bigint NOT NULL REFERENCES states (id) ON DELETE CASCADE,
        field text NOT NULL,
        sealed bytea NOT NULL,
        size integer NOT NULL,
        written_at timestamptz NOT NULL,
        expires_at timestamptz,
        PRIMARY KEY (state_id, field)
    )
    """,
    "CREATE INDEX state_fields_by_expiry ON state_fields (space_id, expires_at) WHERE expires_at IS NOT NULL",
    # What was written before that is refused. It leads to nobody: whose scope it was cannot be told from a hash.
    """
    CREATE TABLE erased_states (
        space_id bigint NOT NULL REFERENCES spaces (id),
        scope bytea NOT NULL,
        erased_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (space_id, scope)
    )
    """,
    """
    CREATE POLICY unheld ON states AS RESTRICTIVE FOR DELETE USING (
        NOT subjects && ARRAY(SELECT h.subject_id FROM holds h))
    """,
    """
    CREATE TRIGGER held BEFORE TRUNCATE ON states FOR EACH STATEMENT EXECUTE FUNCTION refuse_under_hold()
    """,
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("object_types", "state_scope_keys", "states", "state_fields", "erased_states")
    for table, dead in {"states": "expires_at", "state_fields": "coalesce(expires_at, 'infinity')"}.items():
        op.execute(f"""
            CREATE POLICY live ON {table} AS RESTRICTIVE FOR SELECT USING (
                current_setting('afterturn.expired', true) = 'seen' OR current_setting('afterturn.space', true) = 'every'
                OR {dead} > now())
        """)
