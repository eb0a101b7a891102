// Calls to this page's own server: each carries the session's secret in a header, none in an address.

/** @import { Got, Posted } from '../types/page.d.ts' */

const KEY = 'outlast.session';
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';

export class Refused extends Error {
  /** @param {number} status @param {{ code?: string, message?: string, hint?: string }} [info] */
  constructor(status, info) {
    super(info?.message ?? (status === 0 ? 'outlast web does not answer' : `refused (${status})`));
    this.status = status;
    this.code = info?.code;
    this.hint = info?.hint ?? (status === 0 ? 'start it again with outlast web' : undefined);
  }
}

/** The secret of a read-only link: it is used instead of a session's, and is not kept. */
let lent = null;

export function borrow(secret) {
  lent = secret;
}

export function hasSession() {
  return localStorage.getItem(KEY) !== null;
}

export function forget() {
  localStorage.removeItem(KEY);
}

/** Exchanges a code for a session. */
export async function enter(code) {
  forget();
  const { secret } = await read(await ask('/api/session', { code }));
  localStorage.setItem(KEY, secret);
}

/** A session for the person whom a proxy names; false if there is none. */
export async function enterNamed() {
  const response = await ask('/api/session', { proxy: true });
  const body = await response.json().catch(() => null);
  if (response.ok) localStorage.setItem(KEY, body.secret);
  else if (response.status === 403 && body?.error) throw new Refused(403, body.error);
  return response.ok;
}

export async function leave() {
  await ask('/api/session/end', {});
  forget();
}

/** An id for an order. The same id is the same order, however often it is sent. */
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => DIGITS[byte & 31]).join('');
}

/**
 * What an address answers.
 * @template {string} Address
 * @param {Address} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<Got<Address>>}
 */
export async function get(path, signal) {
  return read(await ask(path, undefined, signal));
}

/**
 * What an order is answered with.
 * @template {string} Address
 * @param {Address} path
 * @param {object} body
 * @returns {Promise<Posted<Address>>}
 */
export async function post(path, body) {
  return read(await ask(path, body));
}

/**
 * An answer whose body is read as it comes.
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export async function open(path, signal) {
  const response = await ask(path, undefined, signal);
  if (!response.ok) await read(response);
  if (!response.body) throw new Error('the answer has no body');
  return response.body.getReader();
}

/** @param {string} path @param {object} [body] @param {AbortSignal} [signal] */
async function ask(path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = {};
  const secret = lent ?? localStorage.getItem(KEY);
  if (secret) headers.authorization = `Bearer ${secret}`;
  if (body) headers['content-type'] = 'application/json';
  try {
    return await fetch(path, {
      method: body ? 'POST' : 'GET', headers, signal, body: body && JSON.stringify(body), credentials: 'omit', cache: 'no-store', redirect: 'error',
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0);
  }
}

/** @param {Response} response */
async function read(response) {
  const body = await response.json().catch(() => null);
  if (response.ok) return body;
  if (response.status === 401 && body?.error?.code === 'no_session') {
    if (!lent) forget();
    dispatchEvent(new Event('outlast-no-session'));
  }
  throw new Refused(response.status, body?.error);
}

/** Server-sent events out of bytes: calls `take(name, data)` for each. */
export function sse(take) {
  const decoder = new TextDecoder();
  let pending = '';
  return (bytes) => {
    pending += decoder.decode(bytes, { stream: true });
    for (let end = pending.indexOf('\n\n'); end >= 0; end = pending.indexOf('\n\n')) {
      const lines = pending.slice(0, end).split('\n');
      pending = pending.slice(end + 2);
      const value = (field) => lines.filter((line) => line.startsWith(`${field}: `)).map((line) => line.slice(field.length + 2)).join('\n');
      const data = value('data');
      if (data) take(value('event'), JSON.parse(data));
    }
  };
}
