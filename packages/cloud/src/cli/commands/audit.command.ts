import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { UsageError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';

interface AuditEntry {
  at: string;
  action: string;
  resource: string;
  resourceId: string | null;
  keyId: string | null;
  interface: string;
}

const columns: Column<AuditEntry>[] = [
  { title: 'AT', value: (entry) => entry.at },
  { title: 'ACTION', value: (entry) => entry.action },
  { title: 'RESOURCE', value: (entry) => entry.resource },
  { title: 'ID', value: (entry) => entry.resourceId },
  { title: 'KEY', value: (entry) => entry.keyId },
  { title: 'INTERFACE', value: (entry) => entry.interface },
];

export const audit = command({
  name: 'audit',
  summary: 'Show who changed what in your account.',
  options: {
    limit: { kind: 'text', value: 'N', description: 'The maximum number of entries.' },
    ...serverOptions,
  },
  async run(call) {
    const { limit } = call.options;
    if (limit !== undefined && !/^[1-9]\d{0,8}$/.test(limit))
      throw new UsageError(`--limit is ${JSON.stringify(limit)}; allowed: a whole number of at least 1`);
    const client = await connect(call);
    const { answer, rows } = await client.list<AuditEntry>(
      `/v2/account/audit-log${limit === undefined ? '' : `?limit=${limit}`}`,
      'entries',
    );
    call.output.printTable(answer, rows, columns, 'Nothing is recorded yet.');
  },
});
