import { command } from '../command-definition.ts';

export const runner = command({
  name: 'runner',
  summary: 'Fetch a deployed folder and run it, in a container (Berth starts it).',
  words: { 'COMMAND...': "What to run, in place of the folder's own command." },
  options: {},
  async run({ words, env }) {
    const { runSnapshot } = await import('../../app/run-snapshot.ts');
    process.exitCode = await runSnapshot({
      env,
      argv: words.COMMAND,
      onLine: (line) => void process.stdout.write(`${line}\n`),
    });
  },
});
