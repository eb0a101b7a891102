// What the page's own server answers, by address: the daemon's own schemas, and what `outlast web` puts around them.
// `xtask web-types` checks ui/*.js against this, with `outlast-openapi` made from the daemon's OpenAPI document.

import type { components } from 'outlast-openapi';

type Schemas = components['schemas'];

export type RunView = Schemas['RunView'];
export type RunRow = Schemas['RunRow'];
export type RunTree = Schemas['RunTree'];
export type TurnRow = Schemas['TurnRow'];
export type TurnView = Schemas['TurnView'];
export type AttemptRow = Schemas['AttemptRow'];
export type TriggerView = Schemas['TriggerView'];
export type SinkRow = Schemas['SinkRow'];
export type SpendView = Schemas['SpendView'];
export type BudgetView = Schemas['BudgetView'];
export type DoctorReport = Schemas['DoctorReport'];
export type Finding = Schemas['Finding'];
export type DiffView = Schemas['DiffView'];
export type OutputFound = Schemas['OutputFound'];
export type LimitView = Schemas['LimitView'];

/** A sentence of truth: text, and times that the page writes in the reader's zone. */
export type Sentence = (string | { at: string })[];

/** In which group of the list a run is, and the words for how it stands. */
export interface Told {
  group: 'needs_you' | 'running' | 'waiting' | 'queued' | 'ended';
  words: string;
}

export interface View {
  run: RunView;
  told: Told;
  truths: Sentence[];
  wants: 'decision' | 'answer' | 'either' | 'look' | null;
}

/** A row as `/api/older` and `/api/week` have it. */
export interface ToldRow {
  run: RunRow;
  told: Told;
  truths: Sentence[];
}

/** A row as the page keeps it. */
export type Row = RunRow & { told: Told; truths: Sentence[] };

/** An event of a journal: its own fields differ by kind. */
export interface Event {
  event: { seq: number; at: string; run: string; kind: string; turn?: number; attempt?: number; [field: string]: unknown };
  says: string[];
  truth: Sentence | null;
}

export interface WeekTrigger {
  name: string;
  kind: string;
  paused: boolean;
  tz: string | null;
  problem: { code: string; message: string; hint: string | null } | null;
  next: Schemas['NextTime'][];
  more_next: boolean;
  runs: ToldRow[];
  more_runs: boolean;
  missed: Schemas['MissedTimes'][];
}

export interface Week {
  now: string;
  unknown_before: string | null;
  more_triggers: number;
  triggers: WeekTrigger[];
}

/** The addresses of one run, of its output, and of one trigger. */
export type RunPath = `/api/runs/${string}`;
export type TriggerPath = `/api/triggers/${string}`;

/** What a GET of an address answers. An address that is not here is an error of the page. */
export type Got<Address extends string> =
  Address extends '/api/daemon' ? Schemas['DaemonStatus']
  : Address extends '/api/budgets' ? BudgetView[]
  : Address extends `/api/spend?${string}` ? SpendView
  : Address extends '/api/sinks' ? SinkRow[]
  : Address extends '/api/doctor' ? DoctorReport
  : Address extends '/api/triggers' ? TriggerView[]
  : Address extends '/api/week' ? Week
  : Address extends `/api/triggers/${string}/runs` ? RunRow[]
  : Address extends `/api/older${string}` ? ToldRow[]
  : Address extends `/api/report${string}` ? Report
  : Address extends `/api/runs/${string}/turns?${string}` ? TurnRow[]
  : Address extends `/api/runs/${string}/turns/${string}` ? TurnView
  : Address extends `/api/runs/${string}/tree` ? RunTree
  : Address extends `/api/runs/${string}/diff${string}` ? DiffView
  : Address extends `/api/runs/${string}/output/search?${string}` ? OutputFound
  : Address extends `/api/s/output/search?${string}` ? OutputFound
  : Address extends `/api/runs/${string}/events?${string}` ? Event[]
  : Address extends '/api/s/run' ? SharedView
  : Address extends '/api/s/turns?limit=100' ? TurnRow[]
  : Address extends RunPath ? View
  : never;

/** What a POST to an address answers. */
export type Posted<Address extends string> =
  Address extends '/api/session' ? { secret: string }
  : Address extends '/api/ticket' ? { ticket: string }
  : Address extends `/api/daemon/${string}` ? Schemas['HoldView']
  : Address extends '/api/runs' ? Schemas['Created']
  : Address extends '/api/sinks/test' ? Schemas['SinkTested']
  : Address extends `/api/triggers/${string}/run` ? Schemas['TriggerRan']
  : unknown;

/** A run as a read-only link shows it. */
export interface SharedView {
  told: Told;
  truths: Sentence[];
  link: { output: boolean; left_s: number };
  run: Pick<RunView, 'id' | 'name' | 'state' | 'health_since' | 'phase' | 'turn' | 'attempt' | 'turns_committed' | 'created_at' | 'started_at' | 'ended_at' | 'wake_at' | 'worked_ms' | 'usage' | 'limits' | 'seq'> & { is_asked: boolean };
}

export interface ReportItem {
  id: string;
  name: string | null;
  state: string;
  reason_code: string | null;
  at: string | null;
  took_ms: number | null;
  wake_at: string | null;
  note: string | null;
  runs: number;
}

/** The command line's own report, as `outlast report --json` prints it. */
export interface Report {
  since: string;
  now: string;
  config_problems: string[];
  needs_you: ReportItem[];
  done: ReportItem[];
  not_done: ReportItem[];
  waiting: ReportItem[];
  running: ReportItem[];
  spent: { reported_usd: number; unreported_runs: number; unreported_usd: number };
  budgets: BudgetView[];
  night: Pick<Schemas['NightView'], 'known_from' | 'problem' | 'starts' | 'missed'> & { lost_runs: number; held_since: string | null };
}
