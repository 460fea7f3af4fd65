import type { PodObject } from './kubernetes-objects.ts';

/** Starts that wait for a change of their pod, woken by the watch. */
export class PodWaits {
  readonly #latest = new Map<string, PodObject>();
  readonly #waiting = new Map<string, () => void>();

  /** Called for every pod that the watch reports. */
  notify(pod: PodObject): void {
    const wake = this.#waiting.get(pod.metadata.uid);
    if (wake === undefined) {
      // It may be reported before its create has been answered.
      if (this.#latest.size > MAX_REMEMBERED) this.#latest.delete(this.#latest.keys().next().value ?? '');
      this.#latest.delete(pod.metadata.uid);
    }
    this.#latest.set(pod.metadata.uid, pod);
    wake?.();
  }

  /** The pod's next state; undefined if none came within this time, or the signal was aborted. */
  async next(known: PodObject, timeoutMs: number, signal: AbortSignal): Promise<PodObject | undefined> {
    const { uid } = known.metadata;
    const newer = (): PodObject | undefined => {
      const latest = this.#latest.get(uid);
      return latest !== undefined && version(latest) > version(known) ? latest : undefined;
    };
    if (newer() === undefined && !signal.aborted)
      await new Promise<void>((resolve) => {
        const finish = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', finish);
          this.#waiting.delete(uid);
          resolve();
        };
        const timer = setTimeout(finish, timeoutMs);
        signal.addEventListener('abort', finish);
        this.#waiting.set(uid, finish);
      });
    const found = newer();
    this.#latest.delete(uid);
    return found;
  }
}

const MAX_REMEMBERED = 1000;

function version({ metadata }: PodObject): number {
  return Number(metadata.resourceVersion);
}
