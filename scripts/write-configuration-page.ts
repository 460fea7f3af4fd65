// Writes docs/configuration.md from the list of settings. Run it with node after changing a setting; a test
// fails if the page is out of date.
import { writeFileSync } from 'node:fs';
import { configurationPage } from '../packages/cloud/src/support/config/configuration-page.ts';

writeFileSync(new URL('../docs/configuration.md', import.meta.url), configurationPage());
