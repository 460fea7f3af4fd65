import type { KnobPath } from './knobs.ts';

/** What one source holds for one knob. */
export interface Given {
  value: unknown;
  /** Where it was written, in words that follow "from": `--port`, `BERTH_PORT`, the name of the file. */
  origin: string;
}

/** What one source holds, and what is wrong with the source itself. */
export interface Source {
  given: Map<KnobPath, Given>;
  problems: string[];
}
