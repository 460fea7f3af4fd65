import { command } from '../command-definition.ts';
import type { CommandLoader } from '../command-definition.ts';
import { completionScript, SHELLS } from '../completion.ts';
import { allOptions } from '../parse-command-line.ts';
import { UsageError } from '../cli.errors.ts';

/** It is one of the commands that it completes. */
export const completionCommand = (commands: Readonly<Record<string, CommandLoader>>) =>
  command({
    name: 'completion',
    summary: 'Print a script that completes commands and options in a shell.',
    details:
      'bash: source <(berth completion bash). zsh: berth completion zsh > a folder of fpath, as ' +
      '_berth. fish: berth completion fish > ~/.config/fish/completions/berth.fish.',
    words: { SHELL: `One of ${SHELLS.join(', ')}.` },
    async run(call) {
      const shell = SHELLS.find((known) => known === call.words.SHELL);
      if (shell === undefined)
        throw new UsageError(`SHELL is ${JSON.stringify(call.words.SHELL)}; allowed: ${SHELLS.join(', ')}`);
      const all = await Promise.all(
        Object.entries(commands).map(async ([name, load]) => {
          const { summary, options } = await load();
          return { name, summary, options: Object.keys(allOptions(options)) };
        }),
      );
      call.output.printText(completionScript(shell, all));
    },
  });
