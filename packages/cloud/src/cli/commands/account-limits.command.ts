import { formatBytes } from '../../support/byte-size.ts';
import {
  LIMIT_NAMES,
  LIMIT_UNITS,
  type LimitName,
  parseLimitEntry,
} from '../../support/config/limits.setting.ts';
import { accountPath } from '../account-client.ts';
import { connect } from '../connect.ts';
import { CliError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';

interface LimitView {
  name: LimitName;
  used: number;
  limit: number | null;
  warning: boolean;
}

const columns: Column<LimitView>[] = [
  { title: 'LIMIT', value: ({ name }) => name },
  { title: 'USED', value: ({ name, used }) => (LIMIT_UNITS[name] === 'hours' ? null : format(name, used)) },
  { title: 'MAXIMUM', value: ({ name, limit }) => (limit === null ? 'none' : format(name, limit)) },
  { title: 'STATE', value: ({ warning }) => (warning ? 'nearly or fully used' : 'fine') },
];

/** The word that removes a limit. */
const NONE = 'none';

export const accountLimits = command({
  name: 'account limits',
  summary: 'Show and set what an account may use.',
  details:
    `Limits: ${LIMIT_NAMES.join(', ')}. Bytes may have a unit (5GB), spendPerMonth is in US dollars, ` +
    `requests are those of a minute, jobHours and logHours say for how long ended jobs and logs are kept, and NAME=${NONE} removes a ` +
    'limit, so that the one of the configuration applies. For operators, except to show your own.',
  words: { 'ACCOUNT?': 'The account, by id or name. Default: your own.' },
  options: {
    ...serverOptions,
    set: { kind: 'list', value: 'NAME=VALUE', description: 'Sets a limit. May be repeated.' },
  },
  async run(call) {
    const client = await connect(call);
    const { ACCOUNT: account } = call.words;
    const change = Object.fromEntries(call.options.set.map(parseSetting));
    if (call.options.set.length > 0 && account === undefined)
      throw new CliError(
        'name the account whose limits are set: berth account limits ACCOUNT --set NAME=VALUE',
      );
    const path = `${await accountPath(client, account)}/limits`;
    const answer = await (call.options.set.length === 0
      ? client.get<{ limits: LimitView[] }>(path)
      : client.patch<{ limits: LimitView[] }>(path, change));
    call.output.printTable(answer, answer.limits, columns, 'There are no limits.');
  },
});

function parseSetting(entry: string): [string, number | null] {
  const [name = '', value] = entry.split('=');
  if (LIMIT_NAMES.some((known) => known === name) && value === NONE) return [name, null];
  const parsed = parseLimitEntry(entry);
  if (parsed === undefined)
    throw new CliError(
      `--set ${JSON.stringify(entry)} is not a limit; allowed: NAME=VALUE with ` +
        `${LIMIT_NAMES.join(', ')}, and a number, a size such as 5GB, or ${NONE}`,
    );
  return parsed;
}

function format(name: LimitName, amount: number): string {
  switch (LIMIT_UNITS[name]) {
    case 'bytes':
      return formatBytes(amount);
    case 'dollars':
      return `$${amount.toFixed(2)}`;
    case 'hours':
      return `${amount} h`;
    case 'per minute':
      return `${amount} a minute`;
    case 'count':
      return String(amount);
  }
}
