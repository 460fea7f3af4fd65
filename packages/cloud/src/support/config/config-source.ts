import type { SettingPath } from './settings.ts';

/** What one source holds for one setting. */
export interface SourceValue {
  value: unknown;
  /** Where it was written, in words that follow "from": `--port`, `BERTH_PORT`, the name of the file. */
  origin: string;
}

/** What one source holds, and what is wrong with the source itself. */
export interface ConfigSource {
  given: Map<SettingPath, SourceValue>;
  problems: string[];
}
