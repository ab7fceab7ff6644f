-- The tokens of a run by model, as JSON: {"provider:model": [input, output]}. Prices change, so costs are
-- computed when they are shown.
ALTER TABLE runs ADD COLUMN model_tokens TEXT NOT NULL DEFAULT '{}';
