import type { InstanceEngine } from '../engines/engine.ts';
import type { Address } from '../engines/instance.ts';
import type { Endpoint } from '../store/records.ts';
import type { Clock } from '../support/clock.ts';
import type { Log } from '../support/log.ts';
import type { Departures } from './departures.ts';
import { isPresent, type Member } from './member.ts';
import type { Roster } from './roster.ts';
import { balancedPorts } from './worker-spec.ts';

const CHECK_EVERY_MS = 5_000;
/** A worker that starts is asked much more often, at first: requests wait for it. */
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;
const STRIKES = 3;
/** After so many it does not come back any more, and another takes its place. */
const STRIKES_TO_LEAVE = 6;

export type Health = 'ready' | 'starting' | 'unhealthy';

export interface BalancedHealthParts {
  roster: Roster;
  departures: Departures;
  engines: ReadonlyMap<string, InstanceEngine>;
  /** Asks a worker how it is. */
  probe(host: string, port: number, path: string): Promise<Health>;
  /** How many requests the gateway has with a worker. */
  inFlight(endpointId: string, workerId: string): number;
  clock: Clock;
  log: Log;
}

/** Knows of the workers of load balancing endpoints whether they take requests: it asks them. */
export class BalancedHealth {
  readonly #parts: BalancedHealthParts;

  constructor(parts: BalancedHealthParts) {
    this.#parts = parts;
  }

  /** Now and then; one that was not ready yet is asked until it is. One that an earlier server found ready has its strikes from the start: nothing else would notice that it hangs. */
  async check(member: Member, endpoint: Endpoint, now: number): Promise<void> {
    const { roster, departures, inFlight } = this.#parts;
    member.busy = inFlight(endpoint.id, member.record.id) > 0;
    if (member.address === undefined) this.awaitReady(member, endpoint);
    if (member.address === undefined && member.record.state !== 'ready') return;
    if (now - member.checkedAt < CHECK_EVERY_MS) return;
    member.checkedAt = now;
    const { state, address } = await this.#ask(member, endpoint);
    if (state === 'ready') answered(member, address);
    else member.strikes += 1;
    if (member.strikes >= STRIKES) member.unhealthy = 'its health check fails';
    if (member.strikes >= STRIKES_TO_LEAVE) void departures.dismiss(member, member.unhealthy);
    roster.changes.tell(endpoint.id);
  }

  /** Asks a worker that starts, or that an earlier server started, until it is ready. */
  awaitReady(member: Member, endpoint: Endpoint): void {
    if (member.asking || member.record.handle === null) return;
    member.asking = true;
    this.#askUntilReady(member, endpoint)
      .catch((error: unknown) =>
        this.#parts.log.warn(
          { err: error, workerId: member.record.id },
          'a worker could not be asked how it is; trying again',
        ),
      )
      .finally(() => (member.asking = false));
  }

  async #askUntilReady(member: Member, endpoint: Endpoint): Promise<void> {
    const { roster, clock } = this.#parts;
    for (
      let pauseMs = FIRST_PAUSE_MS;
      roster.holds(member) && isPresent(member);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
    ) {
      const { state, address } = await this.#ask(member, endpoint);
      if (state === 'ready' && isPresent(member)) {
        const now = clock.now();
        answered(member, address);
        Object.assign(member, { checkedAt: now, idleSince: now });
        if (member.record.state === 'starting') roster.becomesReady(member, now);
        return roster.changes.tell(endpoint.id);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async #ask({ record }: Member, endpoint: Endpoint): Promise<{ state: Health; address?: Address }> {
    const { engines, probe } = this.#parts;
    const [port, healthPort] = balancedPorts(endpoint);
    const engine = engines.get(record.dataCenterId);
    const address = await engine?.address(record.id, port);
    const asked = healthPort === port ? address : await engine?.address(record.id, healthPort);
    if (address === undefined || asked === undefined) return { state: 'unhealthy' };
    return {
      state: await probe(asked.host, asked.port, endpoint.env['HEALTH_CHECK_PATH'] ?? '/ping'),
      address,
    };
  }
}

/** It takes requests, whatever was the matter before. */
function answered(member: Member, address: Address | undefined): void {
  Object.assign(member, { address, strikes: 0, unhealthy: null });
}
