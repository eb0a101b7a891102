-- What the last turn that was committed said, and what the next one is asked to do, for lists; cut as `Row` cuts them. A
-- run that was rebuilt from its directory gets them with its next event.
ALTER TABLE runs ADD COLUMN summary TEXT;
ALTER TABLE runs ADD COLUMN task TEXT;
UPDATE runs SET summary = (
    SELECT CASE WHEN length(said) > 200 THEN substr(said, 1, 200) || '…' ELSE nullif(said, '') END FROM (
        SELECT json_extract(body, '$.summary') AS said FROM events
        WHERE run = runs.no AND kind = 'TurnCommitted' AND json_valid(body) ORDER BY seq DESC LIMIT 1
    )
), task = (
    SELECT CASE WHEN length(asked) > 200 THEN substr(asked, 1, 200) || '…' ELSE nullif(asked, '') END FROM (
        SELECT coalesce(json_extract(body, '$.next_task'), json_extract(body, '$.spec.task')) AS asked, seq FROM events
        WHERE run = runs.no AND kind IN ('TurnCommitted', 'RunCreated') AND json_valid(body)
    ) WHERE asked IS NOT NULL ORDER BY seq DESC LIMIT 1
) WHERE NOT EXISTS (SELECT 1 FROM events WHERE run = runs.no AND kind = 'RunRecovered');

-- The number of the last event that was ever written, as of the last removal of a run. SQLite would give the number of a
-- removed event to another one, and a reader that has seen the first would miss the second.
ALTER TABLE fence ADD COLUMN last_event INTEGER NOT NULL DEFAULT 0;
