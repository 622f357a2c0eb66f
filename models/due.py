"""What is due, spaces in turn: the part of a query that claiming and ringing share. A row may come twice.

It takes kinds ($1), rows per space ($2), rows in all ($3), the window ($4) and how many spaces are visited ($5), and
expects a table expression `turn (mine)` before it: false finds nothing.
"""

WINDOW = 64
SPACES = 1000

FREE = "NOT EXISTS (SELECT FROM work c WHERE c.scope = w.scope AND c.state = 'claimed')"

# What has been due longest, of each kind. Where that is more than the window, one space may fill it: then every space
# with ready work is visited too, beginning at a place that changes from claim to claim.
CANDIDATES = f"""
soonest AS MATERIALIZED (
    SELECT w.* FROM unnest($1::text[]) AS k (kind) CROSS JOIN LATERAL (
        SELECT id, scope, space_id, run_at, kind FROM work w
        WHERE (SELECT mine FROM turn) AND w.state = 'ready' AND w.kind = k.kind AND w.run_at <= now() AND {FREE}
            AND NOT cancel_requested  -- true of all that is ready: it names the index `work_due`
        ORDER BY w.run_at LIMIT $4::bigint) w
), crowded AS MATERIALIZED (
    SELECT kind FROM soonest GROUP BY kind HAVING count(*) >= $4::bigint
), visit (kind, space_id) AS (
    SELECT kind, (
        SELECT CASE WHEN max(w.space_id) > $5::bigint THEN floor(random() * (max(w.space_id) + $5))::bigint - $5 ELSE -1 END
        FROM work w WHERE w.state = 'ready' AND w.kind = c.kind
    ) FROM crowded c
    UNION ALL
    SELECT v.kind, (SELECT min(w.space_id) FROM work w WHERE w.state = 'ready' AND w.kind = v.kind AND w.space_id > v.space_id)
    FROM visit v WHERE v.space_id IS NOT NULL
), visited AS MATERIALIZED (
    SELECT kind, space_id FROM visit WHERE space_id IS NOT NULL LIMIT $5::bigint
), candidate AS MATERIALIZED (
    SELECT id, scope, space_id, run_at FROM soonest
    UNION ALL
    SELECT w.* FROM visited v CROSS JOIN LATERAL (
        SELECT id, scope, space_id, run_at FROM work w
        WHERE w.state = 'ready' AND w.kind = v.kind AND w.space_id = v.space_id AND w.run_at <= now() AND {FREE}
        ORDER BY w.run_at LIMIT least($2::bigint, 2 + $3::bigint / (SELECT count(*) FROM visited))) w
)
"""  # noqa: S608 - the part that is put in is a constant
