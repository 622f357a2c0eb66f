"""Retention: how long each data set is kept, what is held, and what is past its term.

A row is dead from the instant at which its age reaches the horizon: the term counted back from now, or the floor, which
only rises. Changing a term first raises the floor to the horizon of the old one, so nothing that was dead is served again.
Row-level security leaves dead rows out of every read, and held ones out of every DELETE.
"""

from alembic import op

from migrations.guard import guard

revision = "0005"
down_revision = "0004"

_STATEMENTS = (
    """
    CREATE TABLE retention (
        space_id bigint NOT NULL REFERENCES spaces (id),
        data_set text NOT NULL,
        term interval,
        floor timestamptz NOT NULL DEFAULT '-infinity',
        with_source boolean NOT NULL DEFAULT false,
        version bigint NOT NULL DEFAULT 1,
        changed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (space_id, data_set)
    )
    """,
    """
    CREATE TABLE holds (
        space_id bigint NOT NULL REFERENCES spaces (id),
        subject_id uuid NOT NULL REFERENCES subjects (id),
        named uuid NOT NULL,
        actor text NOT NULL,
        placed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (space_id, subject_id, named)
    )
    """,
    "ALTER TABLE logs ADD COLUMN expired_turns bigint NOT NULL DEFAULT 0",
    # By these a sweep walks along what is old in its space. New turns and generations come at an index's end, which is cheap.
    "CREATE INDEX turns_by_age ON turns (space_id, created_at)",
    "CREATE INDEX observations_by_age ON observations (space_id, born_at, id)",
    "CREATE INDEX generations_by_age ON generations (space_id, created_at)",
    # ATOMIC bodies hold on to the tables themselves, so that a dump, which searches no schema, can go by the policies.
    """
    CREATE FUNCTION horizon(bigint, text) RETURNS timestamptz LANGUAGE sql STABLE BEGIN ATOMIC
        SELECT coalesce((
            SELECT greatest(floor, coalesce(now() - term, '-infinity')) FROM retention
            WHERE space_id = $1 AND data_set = $2), '-infinity');
    END
    """,
    # What a read goes by. Sweeper, eraser and operators' counts say that they see the dead; so do readers over all spaces.
    """
    CREATE FUNCTION live_after(text) RETURNS timestamptz LANGUAGE sql STABLE BEGIN ATOMIC
        SELECT CASE
            WHEN current_setting('afterturn.expired', true) = 'seen' THEN '-infinity'::timestamptz
            WHEN current_setting('afterturn.space', true) ~ '^[0-9]+$'
                THEN horizon(current_setting('afterturn.space', true)::bigint, $1)
            ELSE '-infinity'::timestamptz END;
    END
    """,
    # For what prunes over all spaces on a connection that is bound to none.
    """
    CREATE FUNCTION spaces_with_term(text) RETURNS bigint[] LANGUAGE plpgsql AS $$
    DECLARE
        bound text := current_setting('afterturn.space', true);
        found bigint[];
    BEGIN
        PERFORM set_config('afterturn.space', 'every', true);
        found := ARRAY(SELECT space_id FROM retention WHERE data_set = $1);
        PERFORM set_config('afterturn.space', coalesce(bound, ''), true);
        RETURN found;
    END $$
    """,
    """
    CREATE FUNCTION goes_with_source() RETURNS boolean LANGUAGE sql STABLE BEGIN ATOMIC
        SELECT current_setting('afterturn.expired', true) IS DISTINCT FROM 'seen' AND coalesce((
            SELECT with_source FROM retention WHERE data_set = 'observations'
            AND space_id::text = current_setting('afterturn.space', true)), false);
    END
    """,
    """
    CREATE POLICY live ON turns AS RESTRICTIVE FOR SELECT USING (created_at > (SELECT live_after('turns')))
    """,
    """
    CREATE POLICY live ON observations AS RESTRICTIVE FOR SELECT USING (
        born_at > (SELECT live_after('observations'))
        AND (NOT (SELECT goes_with_source()) OR EXISTS (SELECT FROM turns t WHERE t.id = ANY (evidence))))
    """,
    """
    CREATE POLICY live ON generations AS RESTRICTIVE FOR SELECT USING (
        created_at > (SELECT live_after('generations'))
        OR EXISTS (SELECT FROM logs l WHERE l.id = log_id AND l.generation = number))
    """,
    """
    CREATE POLICY live ON model_usage AS RESTRICTIVE FOR SELECT USING (created_at > (SELECT live_after('model_usage')))
    """,
    """
    CREATE POLICY live ON receipts AS RESTRICTIVE FOR SELECT USING (at > (SELECT live_after('receipts')))
    """,
)

# By table: what a row's subject must be none of. A turn is kept for whoever spoke, and for whose log it is in.
_SUBJECT = "{} NOT IN (SELECT h.subject_id FROM holds h)"
_LOG = "log_id NOT IN (SELECT l.id FROM holds h JOIN logs l ON l.space_id = h.space_id AND l.subject_id = h.subject_id)"
_UNHELD = {
    "turns": (_SUBJECT.format("subject_id"), _LOG),
    "quarantine": (
        _LOG,
        "NOT EXISTS (SELECT FROM turns t JOIN holds h ON h.subject_id = t.subject_id WHERE t.id = turn_id)",
    ),
    "observations": (_SUBJECT.format("subject_id"),),
    "generations": (_LOG,),
    "conversations": (_SUBJECT.format("subject_id"),),
    "logs": (_SUBJECT.format("subject_id"),),
    "handles": (_SUBJECT.format("subject_id"),),
    "subjects": (_SUBJECT.format("id"),),
}

# What empties a table asks no policy.
_NO_TRUNCATE = """
CREATE FUNCTION refuse_under_hold() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bound text := current_setting('afterturn.space', true);
    held boolean;
BEGIN
    PERFORM set_config('afterturn.space', 'every', true);
    held := EXISTS (SELECT FROM holds);
    PERFORM set_config('afterturn.space', coalesce(bound, ''), true);
    IF held THEN
        RAISE EXCEPTION 'somebody is held: % cannot be emptied', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in (*_STATEMENTS, _NO_TRUNCATE):
        op.execute(statement)
    guard("retention", "holds")
    for table, conditions in _UNHELD.items():
        op.execute(f"CREATE POLICY unheld ON {table} AS RESTRICTIVE FOR DELETE USING ({' AND '.join(conditions)})")
        op.execute(
            f"CREATE TRIGGER held BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse_under_hold()"
        )
