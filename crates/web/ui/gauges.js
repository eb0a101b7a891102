// What a run has used of its limits: a bar each, with its words.

import { h } from './dom.js';
import { count, money, span } from './format.js';

/** @import { RunView } from '../types/page.d.ts' */

/** @param {Pick<RunView, 'limits' | 'usage'> & Partial<RunView>} it */
export function gaugesOf(it) {
  const { usage, limits } = it;
  const held = usage.unreported_usd ?? 0;
  const limit = (key) => limits[key];
  const tokens = usage.input_tokens + usage.output_tokens;
  const cost = limit('max_cost_usd_micros');
  const list = [gauge('turns', String(it.turns_committed), limit('max_turns'), limit('max_turns') && String(limit('max_turns').max))];
  const heldTokens = usage.unreported_tokens ?? 0;
  const reported = Math.max(0, usage.cost_usd - held);
  const isWhole = usage.known || usage.money_known || (held === 0 && !usage.unreported_attempts);
  // A plain command reports nothing, and an agent nothing yet: neither is a zero.
  const isSilent = (!usage.known || !it.ended_at) && usage.cost_usd === 0 && tokens === 0;
  let paid = isWhole ? (isSilent ? 'none reported' : money(usage.cost_usd)) : `${money(reported)} reported`;
  if (held > 0) paid += `, up to ${money(held)} more not reported`;
  else if (!isWhole) paid += '; not all of it was';
  list.push(gauge('money', paid, cost, cost && money(cost.max / 1e6), held * 1e6));
  list.push(gauge('tokens', heldTokens > 0 ? `${count(tokens - heldTokens)}, up to ${count(heldTokens)} more not reported` : isSilent ? 'none reported' : count(tokens), limit('max_tokens'), limit('max_tokens') && count(limit('max_tokens').max), heldTokens));
  const clock = limit('run_timeout_ms');
  list.push(gauge('time at work', span(it.worked_ms ?? clock?.used ?? 0), clock, clock && span(clock.max)));
  return list;
}

/** A bar with its words; what was not reported is hatched and said. */
function gauge(label, used, limit, most, held = 0) {
  const text = !most ? used : used.includes('reported') ? `${used}; the limit is ${most}` : `${used} of ${most}`;
  const box = h('div', { class: 'gauge' }, h('span', { class: 'label' }, label), h('span', {}, text));
  if (limit && limit.max > 0) {
    const share = (value) => `${Math.min(100, Math.max(0, (100 * value) / limit.max))}%`;
    const [sure, open] = [h('span', { class: 'sure-part' }), h('span', { class: 'held-part' })];
    sure.style.width = share(limit.used - held);
    open.style.width = share(held);
    box.append(h('span', { class: 'meter', 'aria-hidden': 'true' }, sure, open));
  }
  return box;
}
