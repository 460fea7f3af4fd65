import type { NetworkVolume } from '../../store/records.ts';
import type { BucketExchange, Exchange } from './exchange.ts';
import { sendEmpty, sendXml, timeText } from './exchange.ts';
import { element, xmlDocument } from './xml.ts';

/** The volumes of the account. */
export function listBuckets({ response, admitted }: Exchange, volumes: readonly NetworkVolume[]): void {
  const buckets = [...volumes]
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .map(({ id, createdAt, dataCenterId }) =>
      element('Bucket', [
        element('Name', id),
        element('CreationDate', timeText(createdAt)),
        element('BucketRegion', dataCenterId),
      ]),
    );
  const { accountId } = admitted.caller;
  sendXml(
    response,
    xmlDocument('ListAllMyBucketsResult', [
      element('Owner', [element('ID', accountId), element('DisplayName', accountId)]),
      element('Buckets', buckets),
    ]),
  );
}

export function headBucket({ response, volume }: BucketExchange): void {
  sendEmpty(response, 200, {
    'x-amz-bucket-region': volume.dataCenterId,
    'x-amz-access-point-alias': 'false',
  });
}

export function bucketLocation({ response, volume }: BucketExchange): void {
  sendXml(response, xmlDocument('LocationConstraint', volume.dataCenterId));
}

/** There are no versions, and that may be asked. */
export function bucketVersioning({ response }: BucketExchange): void {
  sendXml(response, xmlDocument('VersioningConfiguration', undefined));
}
