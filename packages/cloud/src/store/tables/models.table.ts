import type { Database } from '../database.ts';
import type { ModelVersion, RepoModel } from '../../domain/repo-model.ts';
import { ownedTable } from './owned-table.ts';
import type { Collection } from '../collection.ts';

export function modelTable(database: Database): Collection<RepoModel> {
  return ownedTable(database, {
    table: 'repo_models',
    toRow: (model) => ({
      id: model.id,
      account_id: model.accountId,
      owner: model.owner,
      name: model.name,
      provider: model.provider,
      status: model.status,
      credential_type: model.credentialType,
      credential_reference: model.credentialReference,
      versions: JSON.stringify(model.versions),
      created_at: model.createdAt,
      updated_at: model.updatedAt,
    }),
    fromRow: (found) => ({
      id: String(found['id']),
      accountId: String(found['account_id']),
      owner: String(found['owner']),
      name: String(found['name']),
      provider: String(found['provider']),
      status: String(found['status']),
      credentialType: found['credential_type'] as string | null,
      credentialReference: found['credential_reference'] as string | null,
      versions: JSON.parse(String(found['versions'])) as ModelVersion[],
      createdAt: Number(found['created_at']),
      updatedAt: Number(found['updated_at']),
    }),
  });
}
