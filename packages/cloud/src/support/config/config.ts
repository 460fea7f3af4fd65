import type { Setting } from './setting.ts';
import type { settings } from './settings.ts';

type Settings = typeof settings;
type Values = { [P in keyof Settings]: Settings[P] extends Setting<infer T> ? T : never };

type Heads<P> = P extends `${infer Head}.${string}` ? Head : P;
type Nest<V> = {
  readonly [H in Heads<keyof V> & string]: H extends keyof V
    ? V[H]
    : Nest<{ [P in keyof V as P extends `${H}.${infer Rest}` ? Rest : never]: V[P] }>;
};

/** The settings of a running Berth: `config.log.level`, `config.webhooks.allowPrivate`. */
export type Config = Nest<Values>;
