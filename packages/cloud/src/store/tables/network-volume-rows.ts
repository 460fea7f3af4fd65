import type { NetworkVolume, VolumeType } from '../../domain/records.ts';
import type { Row } from '../sql.ts';

export function volumeFromRow(found: Row): NetworkVolume {
  return {
    id: String(found['id']),
    accountId: String(found['account_id']),
    name: String(found['name']),
    size: Number(found['size']),
    dataCenterId: String(found['data_center_id']),
    type: found['type'] as VolumeType,
    createdAt: Number(found['created_at']),
  };
}
