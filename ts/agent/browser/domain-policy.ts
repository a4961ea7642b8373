/**
 * Where the agent may go. Asked for every document: addresses it types, links, redirects, windows, frames. Private
 * addresses and schemes that carry their content in the address are refused unless they are allowed by name, or are
 * where the user begins.
 */
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { BoqError } from '../../core/errors.js';

/** Where the agent may go and where not. */
export interface DomainPolicyOptions {
  /** Only these; everything public where empty. 'example.org' means it and what is under it. */
  allow?: readonly string[];
  /** Never these, whatever is allowed. */
  deny?: readonly string[];
  /** Loopback, private and link-local addresses; false unless set. */
  allowPrivate?: boolean;
  /**
   * Where the user begins, which allows as much as the task needs: the host with what is under it; of a private
   * address that port alone; of a file its folder; of other schemes the address itself.
   */
  start?: string;
}

/** `host`, `*.host`, `scheme://host`, `host:port`, `scheme:` or `*`. */
interface Rule {
  scheme: string | null;
  host: string | null;
  subdomains: 'with' | 'only';
  port: string | null;
  text: string;
}

function readRule(text: string): Rule {
  const match =
    /^(?:([a-z][a-z0-9+.-]*):(?:\/\/)?)?((?:\*\.)?[^\s:/*]+|\*|\[[0-9a-f:]+\])?(?::(\d+))?\/?$/i.exec(
      text.trim(),
    );
  const [, scheme, host, port] = match ?? [];
  if (!match || (!scheme && !host)) {
    throw new BoqError(
      'BOQ_USAGE',
      `expected a domain such as example.org, *.example.org or https://example.org, got "${text}"`,
    );
  }
  const only = host?.startsWith('*.') ?? false;
  return {
    scheme: scheme?.toLowerCase() ?? null,
    host: !host || host === '*' ? null : (only ? host.slice(2) : host).toLowerCase(),
    subdomains: only ? 'only' : 'with',
    port: port ?? null,
    text,
  };
}

const privateRanges = new BlockList();
for (const [address, prefix] of [
  ['0.0.0.0', 8], ['10.0.0.0', 8], ['100.64.0.0', 10], ['127.0.0.0', 8], ['169.254.0.0', 16], ['172.16.0.0', 12],
  ['192.0.0.0', 24], ['192.168.0.0', 16], ['198.18.0.0', 15], ['224.0.0.0', 4], ['240.0.0.0', 4],
] as const) privateRanges.addSubnet(address, prefix, 'ipv4'); // biome-ignore format: a table
for (const [address, prefix] of [
  ['::', 96], ['64:ff9b::', 96], ['64:ff9b:1::', 48], ['2001::', 32], ['2002::', 16], ['fc00::', 7], ['fe80::', 10], ['ff00::', 8],
] as const) privateRanges.addSubnet(address, prefix, 'ipv6'); // biome-ignore format: a table

export function isPrivateAddress(address: string): boolean {
  const version = isIP(address);
  return version !== 0 && privateRanges.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

const isWeb = (url: URL): boolean => url.protocol === 'http:' || url.protocol === 'https:';

/** A dot at the end names the same host. */
const hostOf = (url: URL): string => url.hostname.toLowerCase().replace(/\.$/, '');

/** Decides about addresses, one at a time. */
export class DomainPolicy {
  readonly #allow: readonly Rule[];
  readonly #deny: readonly Rule[];
  readonly #allowPrivate: boolean;
  readonly #start: URL | null;
  readonly #resolve: (host: string) => Promise<string[]>;

  /** @throws BoqError BOQ_USAGE for a pattern that is none. */
  constructor(
    { allow = [], deny = [], allowPrivate = false, start }: DomainPolicyOptions,
    resolve = async (host: string) => (await lookup(host, { all: true })).map(({ address }) => address),
  ) {
    this.#allow = allow.map(readRule);
    this.#deny = deny.map(readRule);
    this.#allowPrivate = allowPrivate;
    this.#start = start !== undefined && URL.canParse(start) ? new URL(start) : null;
    this.#resolve = resolve;
  }

  /** Why the address may not be loaded, in words; null where it may. */
  async refuse(address: string): Promise<string | null> {
    if (!URL.canParse(address)) return 'it is no address';
    const url = new URL(address);
    const scheme = url.protocol.slice(0, -1);
    if (address === 'about:blank' || address === 'about:srcdoc') return null;
    const host = hostOf(url);
    const matches = (rule: Rule): boolean => {
      if (rule.scheme !== null && rule.scheme !== scheme) return false;
      if (rule.port !== null && rule.port !== (url.port || (scheme === 'https' ? '443' : '80'))) return false;
      if (rule.host === null) return true;
      return (rule.subdomains === 'with' && host === rule.host) || host.endsWith(`.${rule.host}`);
    };
    const denied = this.#deny.find(matches);
    if (denied) return `${denied.text} is denied`;
    const allowed = this.#allow.find(matches);
    const begun = this.#begins(url);
    if (!isWeb(url)) {
      return begun || allowed?.scheme === scheme ? null : `${scheme}: addresses are refused`;
    }
    if (this.#allow.length > 0 && !allowed && !begun) return `${host} is not among the allowed domains`;
    // An exact name in the list is a decision; a pattern that happens to match is none.
    if (this.#allowPrivate || allowed?.host === host || url.host === this.#start?.host) return null;
    return this.#refusePrivate(host.replace(/^\[|\]$/g, ''));
  }

  /** Whether the address belongs to where the user begins. */
  #begins(url: URL): boolean {
    const start = this.#start;
    if (!start) return false;
    if (isWeb(url))
      return isWeb(start) && (url.host === start.host || hostOf(url).endsWith(`.${hostOf(start)}`));
    if (url.protocol === 'file:' && start.protocol === 'file:') {
      return url.pathname.startsWith(start.pathname.slice(0, start.pathname.lastIndexOf('/') + 1));
    }
    return url.href === start.href;
  }

  async #refusePrivate(host: string): Promise<string | null> {
    if (/(^|\.)(localhost|local|internal|home\.arpa)\.?$/i.test(host)) return `${host} is a private address`;
    if (isIP(host)) return isPrivateAddress(host) ? `${host} is a private address` : null;
    const addresses = await this.#resolve(host).catch(() => []);
    const inside = addresses.find(isPrivateAddress);
    return inside ? `${host} leads to the private address ${inside}` : null;
  }
}
