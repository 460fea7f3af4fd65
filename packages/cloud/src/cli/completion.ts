export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export interface CompletedCommand {
  name: string;
  summary: string;
  /** Without dashes. */
  options: readonly string[];
}

/** A script for the shell: it knows all commands and their options, and completes file names for the rest. */
export function completionScript(
  shell: (typeof SHELLS)[number],
  commands: readonly CompletedCommand[],
): string {
  return shell === 'fish' ? fishScript(commands) : bashScript(commands, shell === 'zsh');
}

/** zsh reads scripts of bash. */
function bashScript(commands: readonly CompletedCommand[], forZsh: boolean): string {
  const firsts = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))];
  const groups = firsts.flatMap((first) => {
    const seconds = commands.flatMap(({ name }) =>
      name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : [],
    );
    return seconds.length === 0 ? [] : [`    ${first}) words="${seconds.join(' ')}" ;;`];
  });
  const options = commands.map(
    ({ name, options: names }) =>
      `    "${name}") words="${names.map((option) => `--${option}`).join(' ')}" ;;`,
  );
  return `${forZsh ? '#compdef berth\nautoload -U +X bashcompinit && bashcompinit\n' : ''}_berth() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${firsts.join(' ')}"
  elif [ "\${current#-}" != "$current" ]; then
    case "\${COMP_WORDS[1]} \${COMP_WORDS[2]}" in
${options.filter((line) => /"\S+ \S+"\)/.test(line)).join('\n')}
    *) case "\${COMP_WORDS[1]}" in
${options.filter((line) => !/"\S+ \S+"\)/.test(line)).join('\n')}
    esac ;;
    esac
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case "\${COMP_WORDS[1]}" in
${groups.join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _berth berth
`;
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const lines = commands.flatMap(({ name, summary, options }) => {
    const [first = '', second] = name.split(' ');
    const isNamed =
      second === undefined
        ? `__fish_seen_subcommand_from ${first}`
        : `__fish_seen_subcommand_from ${first}; and __fish_seen_subcommand_from ${second}`;
    const offer =
      second === undefined
        ? `complete -c berth -n __fish_use_subcommand -a ${first} -d ${quoted(summary)}`
        : 'complete -c berth -n ' +
          `${quoted(`__fish_seen_subcommand_from ${first}; and not __fish_seen_subcommand_from ${second}`)} ` +
          `-a ${second} -d ${quoted(summary)}`;
    return [offer, ...options.map((option) => `complete -c berth -n ${quoted(isNamed)} -l ${option}`)];
  });
  const groups = [
    ...new Set(commands.flatMap(({ name }) => (name.includes(' ') ? [name.split(' ')[0]] : []))),
  ];
  return [
    ...groups.map((group) => `complete -c berth -n __fish_use_subcommand -a ${group}`),
    ...lines,
    '',
  ].join('\n');
}
