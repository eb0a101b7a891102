-- How many attempts of a run did not report all that they used, where the run's agent could have; not known of runs that
-- ended before this was kept.
ALTER TABLE runs ADD COLUMN unreported INTEGER;
