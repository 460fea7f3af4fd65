import type { Knob } from './knob.ts';
import type { knobs } from './knobs.ts';

type Knobs = typeof knobs;
type Values = { [P in keyof Knobs]: Knobs[P] extends Knob<infer T> ? T : never };

type Heads<P> = P extends `${infer Head}.${string}` ? Head : P;
type Nest<V> = {
  readonly [H in Heads<keyof V> & string]: H extends keyof V
    ? V[H]
    : Nest<{ [P in keyof V as P extends `${H}.${infer Rest}` ? Rest : never]: V[P] }>;
};

/** The settings of a running Berth: `config.log.level`, `config.webhooks.allowPrivate`. */
export type Config = Nest<Values>;
