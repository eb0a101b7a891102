-- What a list shows of a loop: where it is, what it may take and what it has used up. `max_turns` never
-- changes. Runs from before were single commands.
ALTER TABLE runs ADD COLUMN phase TEXT;
ALTER TABLE runs ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN cost_usd_micros INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN max_turns INTEGER;
UPDATE runs SET phase = CASE state
    WHEN 'queued' THEN 'queue'
    WHEN 'running' THEN 'turn ' || turn || ' attempt ' || attempt
    WHEN 'waiting' THEN 'backoff'
    WHEN 'finishing' THEN 'finishing'
END WHERE state NOT IN ('completed', 'failed', 'stopped', 'exhausted');
