"""The data database's first schema: from a turn to a memory."""

from alembic import op

from migrations.guard import guard

revision = "0001"
down_revision = None

# What an erasure's acceptance deletes at once (people, their logs, conversations, handles, answers) is tied by foreign
# keys, so that nobody writes for a person who is gone. What it leaves to batches (turns, generations, observations,
# quarantine) is not: whoever adds there holds the log's lock, and the conversation's.
_TABLES = (
    """
    CREATE TABLE spaces (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL UNIQUE,
        lookup_key uuid NOT NULL,
        features jsonb NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    )
    """,
    """
    CREATE TABLE subjects (
        id uuid PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        reborn_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now()
    )
    """,
    """
    CREATE TABLE handles (
        space_id bigint NOT NULL REFERENCES spaces (id),
        kind text NOT NULL,
        digest bytea NOT NULL,
        subject_id uuid NOT NULL REFERENCES subjects (id) ON DELETE CASCADE,
        sealed bytea NOT NULL,
        confirmed boolean NOT NULL DEFAULT true,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (space_id, kind, digest)
    )
    """,
    "CREATE INDEX handles_by_subject ON handles (subject_id)",
    """
    CREATE TABLE api_keys (
        id text PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        name text NOT NULL,
        secret_digest bytea NOT NULL UNIQUE,
        scopes text[] NOT NULL,
        agent text,
        vendor text,
        owner_subject uuid NOT NULL,
        owner_kind text NOT NULL,
        admin boolean NOT NULL,
        allow_impersonation boolean NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        revoked_at timestamptz
    )
    """,
    """
    CREATE TABLE logs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        subject_id uuid NOT NULL REFERENCES subjects (id) ON DELETE CASCADE,
        agent text NOT NULL,
        context text NOT NULL CHECK (context IN ('corporate', 'personal')),
        last_seq bigint NOT NULL DEFAULT 0,
        observed_through bigint NOT NULL DEFAULT 0,
        flush_through bigint NOT NULL DEFAULT 0,
        pending_turns bigint NOT NULL DEFAULT 0 CHECK (pending_turns >= 0),
        pending_tokens bigint NOT NULL DEFAULT 0 CHECK (pending_tokens >= 0),
        oldest_pending_at timestamptz,
        generation bigint NOT NULL DEFAULT 1,
        live_tokens bigint NOT NULL DEFAULT 0,
        erased_turns bigint NOT NULL DEFAULT 0,
        last_error text,
        last_error_at timestamptz,
        failed_reflection text,
        created_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (space_id, subject_id, agent, context),
        CHECK (observed_through <= last_seq)
    ) WITH (fillfactor = 50)
    """,
    "CREATE INDEX logs_by_subject ON logs (subject_id)",
    "CREATE INDEX logs_pending ON logs (id) WHERE pending_turns > 0",
    """
    CREATE TABLE generations (
        log_id bigint NOT NULL,
        number bigint NOT NULL,
        space_id bigint NOT NULL REFERENCES spaces (id),
        made_by text NOT NULL CHECK (made_by IN ('observe', 'reflect', 'restore')),
        parent bigint,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (log_id, number)
    )
    """,
    """
    CREATE TABLE conversations (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        subject_id uuid NOT NULL REFERENCES subjects (id) ON DELETE CASCADE,
        digest bytea NOT NULL,
        sealed_id bytea NOT NULL,
        agent text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (space_id, subject_id, digest)
    )
    """,
    "CREATE INDEX conversations_by_subject ON conversations (subject_id)",
    """
    CREATE TABLE turns (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        space_id bigint NOT NULL,
        log_id bigint NOT NULL,
        seq bigint NOT NULL,
        conversation_id bigint NOT NULL,
        subject_id uuid NOT NULL,
        role text NOT NULL,
        sealed bytea NOT NULL,
        tokens integer NOT NULL,
        said_at timestamptz NOT NULL,
        said_offset smallint NOT NULL,
        state text NOT NULL CHECK (state IN ('pending', 'observed', 'skipped', 'quarantined', 'expired')),
        reason text,
        generation bigint,
        message_digest bytea,
        task_digest bytea,
        call_digest bytea,
        created_at timestamptz NOT NULL DEFAULT now(),
        CHECK (state = 'pending' OR reason IS NOT NULL OR generation IS NOT NULL)
    )
    """,
    "CREATE UNIQUE INDEX turns_by_log ON turns (log_id, seq)",
    "CREATE UNIQUE INDEX turns_by_message ON turns (conversation_id, message_digest)",
    "CREATE INDEX turns_pending ON turns (log_id, seq) WHERE state = 'pending'",
    # By these an erasure finds the idempotency keys of the last day.
    "CREATE INDEX turns_called_by_log ON turns (log_id, created_at) WHERE call_digest IS NOT NULL",
    "CREATE INDEX turns_called_in ON turns (conversation_id, created_at) WHERE call_digest IS NOT NULL",
    """
    CREATE TABLE observations (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        space_id bigint NOT NULL,
        log_id bigint NOT NULL,
        subject_id uuid NOT NULL,
        generation bigint NOT NULL,
        sealed bytea NOT NULL,
        digest bytea NOT NULL,
        kind text NOT NULL,
        priority text NOT NULL,
        tokens integer NOT NULL,
        observed_at timestamptz NOT NULL,
        observed_offset smallint NOT NULL,
        evidence bigint[] NOT NULL CHECK (cardinality(evidence) > 0),
        sources bigint[] NOT NULL,
        supersedes bigint,
        born_at timestamptz NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (log_id, generation, digest)
    )
    """,
    """
    CREATE TABLE quarantine (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        log_id bigint NOT NULL,
        turn_id bigint NOT NULL,
        reason text NOT NULL,
        attempts jsonb NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        released_at timestamptz
    )
    """,
    "CREATE INDEX quarantine_by_turn ON quarantine (turn_id)",
    "CREATE INDEX quarantine_held ON quarantine (space_id, id) WHERE released_at IS NULL",
    """
    CREATE TABLE model_answers (
        work_id bigint NOT NULL,
        step text NOT NULL,
        space_id bigint NOT NULL REFERENCES spaces (id),
        subject_id uuid NOT NULL REFERENCES subjects (id) ON DELETE CASCADE,
        sealed bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (work_id, step)
    )
    """,
    "CREATE INDEX model_answers_by_subject ON model_answers (subject_id)",
    """
    CREATE TABLE model_usage (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        work_id bigint NOT NULL,
        job text NOT NULL,
        model text NOT NULL,
        outcome text NOT NULL,
        input_tokens integer NOT NULL,
        cached_tokens integer NOT NULL,
        output_tokens integer NOT NULL,
        latency_ms integer NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    )
    """,
    "CREATE INDEX model_usage_by_day ON model_usage (space_id, created_at)",
    """
    CREATE TABLE work (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind text NOT NULL,
        queue_class text NOT NULL,
        space_id bigint NOT NULL,
        scope text NOT NULL,
        dedup text NOT NULL,
        state text NOT NULL DEFAULT 'ready'
            CONSTRAINT work_state CHECK (state IN ('ready', 'claimed', 'done', 'dead', 'cancelled', 'merged')),
        run_at timestamptz NOT NULL DEFAULT now(),
        attempt integer NOT NULL DEFAULT 0,
        crashes integer NOT NULL DEFAULT 0,
        waits integer NOT NULL DEFAULT 0,
        epoch bigint NOT NULL DEFAULT 0,
        owner text,
        claimed_until timestamptz,
        rung_at timestamptz,
        cancel_requested boolean NOT NULL DEFAULT false,
        payload jsonb NOT NULL,
        progress jsonb NOT NULL DEFAULT '{}',
        last_error text,
        trace_parent text,
        created_at timestamptz NOT NULL DEFAULT now(),
        finished_at timestamptz
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01)
    """,
    "CREATE UNIQUE INDEX work_ready_once ON work (kind, dedup) WHERE state = 'ready'",
    "CREATE UNIQUE INDEX work_claimed_once ON work (scope) WHERE state = 'claimed'",
    "CREATE INDEX work_due ON work (kind, run_at) WHERE state = 'ready' AND NOT cancel_requested",
    "CREATE INDEX work_due_by_space ON work (kind, space_id, run_at) WHERE state = 'ready'",
    "CREATE INDEX work_running ON work (kind, space_id) WHERE state = 'claimed'",
    "CREATE INDEX work_finished ON work (finished_at) WHERE finished_at IS NOT NULL",
)

# `spaces` and `api_keys` are read before a space is known, and `work` holds ids and numbers only.
_GUARDED = (
    "subjects",
    "handles",
    "logs",
    "generations",
    "conversations",
    "turns",
    "observations",
    "quarantine",
    "model_answers",
    "model_usage",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _TABLES:
        op.execute(statement)
    guard(*_GUARDED)
