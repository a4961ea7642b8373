/**
 * Writing and reading the safetensors format: eight bytes of header length, a JSON header, then the tensors' bytes
 * (format: the README of huggingface/safetensors). Files written here are aligned to eight bytes and hold their
 * tensors in the order given, without holes.
 */
import { type FileHandle, open, rename } from 'node:fs/promises';
import { BoqError } from './errors.js';

export type SafetensorsDtype = 'F32' | 'F16' | 'BF16' | 'I64' | 'I32' | 'U8';

const bytesOf: Record<SafetensorsDtype, number> = { F32: 4, F16: 2, BF16: 2, I64: 8, I32: 4, U8: 1 };

/** The header's limit in the reference implementation. */
const MAX_HEADER_BYTES = 100_000_000;

export interface TensorSpec {
  name: string;
  dtype: SafetensorsDtype;
  shape: readonly number[];
}

export interface Tensor extends TensorSpec {
  /** Little-endian, row-major; `byteLength` is the product of the shape times the element's size. */
  data: Uint8Array;
}

export function tensorBytes(spec: TensorSpec): number {
  return spec.shape.reduce((product, size) => product * size, 1) * bytesOf[spec.dtype];
}

/** A view of a typed array's bytes, without a copy. */
export function bytesView(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/**
 * The bytes before the tensors' data. Data follows in the order of `specs`. Padded to at least `minBytes`, so that a
 * header can be replaced in place when a file grew.
 */
export function safetensorsHeader(
  specs: readonly TensorSpec[],
  metadata: Readonly<Record<string, string>> = {},
  minBytes = 0,
): Uint8Array {
  const header: Record<string, unknown> = {};
  if (Object.keys(metadata).length > 0) header.__metadata__ = metadata;
  let offset = 0;
  for (const spec of specs) {
    if (spec.name in header) {
      throw new BoqError('BOQ_INVALID_ARGUMENT', `tensor names must differ, but "${spec.name}" came twice`);
    }
    const end = offset + tensorBytes(spec);
    header[spec.name] = { dtype: spec.dtype, shape: spec.shape, data_offsets: [offset, end] };
    offset = end;
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Math.max(Math.ceil(json.length / 8) * 8, minBytes - 8);
  const bytes = Buffer.alloc(8 + padded, ' ');
  bytes.writeBigUInt64LE(BigInt(padded), 0);
  json.copy(bytes, 8);
  return bytes;
}

/**
 * Writes a whole file: to a temporary name beside it first, flushed to the disk, then renamed, so that a file with
 * the final name is always complete.
 *
 * @throws BoqError BOQ_INVALID_ARGUMENT where a tensor's data does not have the size that its shape asks for.
 */
export async function writeSafetensors(
  path: string,
  tensors: readonly Tensor[],
  metadata: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (const tensor of tensors) {
    const expected = tensorBytes(tensor);
    if (tensor.data.byteLength !== expected) {
      throw new BoqError(
        'BOQ_INVALID_ARGUMENT',
        `${tensor.name} needs ${expected} bytes for ${tensor.dtype} [${tensor.shape.join(', ')}], got ${tensor.data.byteLength}`,
      );
    }
  }
  const temporary = `${path}.part`;
  const file = await open(temporary, 'w');
  try {
    await file.write(safetensorsHeader(tensors, metadata));
    for (const tensor of tensors) await writeFully(file, tensor.data);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

async function writeFully(file: FileHandle, data: Uint8Array): Promise<void> {
  for (let done = 0; done < data.byteLength; ) {
    const { bytesWritten } = await file.write(data, done, data.byteLength - done);
    done += bytesWritten;
  }
}

/**
 * Reads every tensor of a file this package wrote (runs, models of moderate size). Checkpoints are read by C++.
 *
 * @throws BoqError BOQ_FILE_CORRUPT where the header and the file's size do not fit together.
 */
export async function readSafetensors(path: string): Promise<Map<string, Tensor>> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const corrupt = (why: string): BoqError => new BoqError('BOQ_FILE_CORRUPT', `${path}: ${why}`);
    if (size < 8) throw corrupt(`a safetensors file has at least 8 bytes, this one has ${size}`);
    const headerBytes = Number((await readAt(file, 0, 8)).readBigUInt64LE(0));
    if (headerBytes > MAX_HEADER_BYTES || 8 + headerBytes > size) {
      throw corrupt(`its header is said to have ${headerBytes} bytes, the file has ${size}`);
    }
    const header = JSON.parse((await readAt(file, 8, headerBytes)).toString('utf8')) as Record<
      string,
      { dtype: SafetensorsDtype; shape: number[]; data_offsets: [number, number] }
    >;
    const tensors = new Map<string, Tensor>();
    for (const [name, entry] of Object.entries(header)) {
      if (name === '__metadata__') continue;
      const { dtype, shape } = entry;
      const [begin, end] = entry.data_offsets;
      if (!(dtype in bytesOf) || end - begin !== tensorBytes({ name, dtype, shape })) {
        throw corrupt(`the header's entry for ${name} contradicts itself`);
      }
      if (8 + headerBytes + end > size) throw corrupt(`${name} lies beyond the file's end`);
      const data = await readAt(file, 8 + headerBytes + begin, end - begin);
      tensors.set(name, { name, dtype, shape, data });
    }
    return tensors;
  } finally {
    await file.close();
  }
}

/** Into a buffer of its own, so that typed arrays of any element size can be laid over it. */
async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.from(new ArrayBuffer(length));
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) throw new BoqError('BOQ_FILE_CORRUPT', 'a file became shorter while it was read');
    done += bytesRead;
  }
  return buffer;
}
