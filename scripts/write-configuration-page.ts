// Writes docs/configuration.md from the list of knobs. Run it with node after changing a knob; a test tells
// when it was forgotten.
import { writeFileSync } from 'node:fs';
import { configurationPage } from '../packages/cloud/src/support/config/configuration-page.ts';

writeFileSync(new URL('../docs/configuration.md', import.meta.url), configurationPage());
