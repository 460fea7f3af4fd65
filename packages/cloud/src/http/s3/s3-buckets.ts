import type { NetworkVolume } from '../../domain/records.ts';
import type { S3BucketExchange, S3Exchange } from './s3-exchange.ts';
import { s3Document, sendEmpty, sendXml, s3Timestamp } from './s3-exchange.ts';
import { element } from '../../support/xml-writer.ts';

/** The volumes of the account. */
export function listBuckets({ response, auth }: S3Exchange, volumes: readonly NetworkVolume[]): void {
  const buckets = [...volumes]
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .map(({ id, createdAt, dataCenterId }) =>
      element('Bucket', [
        element('Name', id),
        element('CreationDate', s3Timestamp(createdAt)),
        element('BucketRegion', dataCenterId),
      ]),
    );
  const { accountId } = auth.caller;
  sendXml(
    response,
    s3Document('ListAllMyBucketsResult', [
      element('Owner', [element('ID', accountId), element('DisplayName', accountId)]),
      element('Buckets', buckets),
    ]),
  );
}

export function headBucket({ response, volume }: S3BucketExchange): void {
  sendEmpty(response, 200, {
    'x-amz-bucket-region': volume.dataCenterId,
    'x-amz-access-point-alias': 'false',
  });
}

export function bucketLocation({ response, volume }: S3BucketExchange): void {
  sendXml(response, s3Document('LocationConstraint', volume.dataCenterId));
}

/** There are no versions, and that may be asked. */
export function bucketVersioning({ response }: S3BucketExchange): void {
  sendXml(response, s3Document('VersioningConfiguration', undefined));
}
