// X.509 certificates and certificate requests (RFC 5280, RFC 2986): what people want to know of them. Nothing is verified.

/**
 * @typedef {object} Certificate
 * @property {string} subject
 * @property {string} issuer "" of a request.
 * @property {string} serial Hexadecimal; "" of a request.
 * @property {number} from Milliseconds since 1970; NaN of a request.
 * @property {number} until Milliseconds since 1970; NaN of a request.
 * @property {string[]} names The subject alternative names: "DNS:example.com".
 * @property {string} key "RSA 2048", "ECDSA P-256", "Ed25519".
 * @property {string[]} usages
 * @property {boolean} authority Whether it may sign certificates.
 */

/** @typedef {{ tag: number, start: number, end: number }} Part An element of DER: its content is between `start` and `end`. */

const MAX_BYTES = 64 * 1024, MAX_PARTS = 4096, MAX_BLOCKS = 200, MAX_NAMES = 200;
const SEQUENCE = 0x30, SET = 0x31, BOOLEAN = 0x01, INTEGER = 0x02, BITS = 0x03, OCTETS = 0x04, OID = 0x06;

/** @type {Record<string, string>} */
const ATTRIBUTES = {
  "2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "street", "2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title",
  "0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC", "1.2.840.113549.1.9.1": "emailAddress",
};
/** @type {Record<string, string>} */
const CURVES = { "1.2.840.10045.3.1.7": "P-256", "1.3.132.0.34": "P-384", "1.3.132.0.35": "P-521", "1.3.132.0.33": "P-224", "1.3.132.0.10": "secp256k1" };
/** @type {Record<string, string>} */
const KEYS = { "1.3.101.112": "Ed25519", "1.3.101.113": "Ed448", "1.2.840.10040.4.1": "DSA" };
const RSA = ["1.2.840.113549.1.1.1", "1.2.840.113549.1.1.10"], ELLIPTIC = "1.2.840.10045.2.1";
const KEY_USAGES = ["digital signature", "content commitment", "key encipherment", "data encipherment", "key agreement", "cert sign", "crl sign", "encipher only", "decipher only"];
/** The names of Kubernetes. @type {Record<string, string>} */
const EXTENDED_USAGES = {
  "1.3.6.1.5.5.7.3.1": "server auth", "1.3.6.1.5.5.7.3.2": "client auth", "1.3.6.1.5.5.7.3.3": "code signing", "1.3.6.1.5.5.7.3.4": "email protection",
  "1.3.6.1.5.5.7.3.8": "timestamping", "1.3.6.1.5.5.7.3.9": "ocsp signing", "2.5.29.37.0": "any",
};
const ALTERNATIVE_NAMES = "2.5.29.17", KEY_USAGE = "2.5.29.15", EXTENDED_KEY_USAGE = "2.5.29.37", CONSTRAINTS = "2.5.29.19", EXTENSION_REQUEST = "1.2.840.113549.1.9.14";

/** Reads DER; each method throws an Error for what is not as expected. */
class DER {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    if (bytes.length > MAX_BYTES) throw new Error("too large");
    this.bytes = bytes;
    this.left = MAX_PARTS;
  }

  /** Return the element at a place. @param {number} at @param {number} end @returns {Part} */
  part(at, end) {
    if (--this.left < 0) throw new Error("too many elements");
    if (at + 2 > end) throw new Error("truncated");
    const tag = this.bytes[at];
    let length = this.bytes[at + 1], start = at + 2;
    if ((tag & 0x1f) === 0x1f) throw new Error("unsupported tag");
    if (length > 0x80) {
      const count = length & 0x7f;
      if (count > 3 || start + count > end) throw new Error("invalid length");
      length = 0;
      for (let index = 0; index < count; index++) length = length * 256 + this.bytes[start + index];
      start += count;
    } else if (length === 0x80) throw new Error("indefinite length");
    if (start + length > end) throw new Error("truncated");
    return { tag, start, end: start + length };
  }

  /** @param {Part} parent @returns {Part[]} */
  parts({ start, end }) {
    const found = [];
    for (let at = start; at < end;) {
      const one = this.part(at, end);
      found.push(one);
      at = one.end;
    }
    return found;
  }

  /** @param {Part | undefined} part @param {number} tag @returns {Part} */
  expect(part, tag) {
    if (part?.tag !== tag) throw new Error("unexpected element");
    return part;
  }

  /** @param {Part | undefined} part @param {number} [tag] @returns {Part[]} */
  members(part, tag = SEQUENCE) { return this.parts(this.expect(part, tag)); }

  /** @param {Part} part */
  content({ start, end }) { return this.bytes.subarray(start, end); }

  /** @param {Part | undefined} part */
  oid(part) {
    const bytes = this.content(this.expect(part, OID));
    /** @type {number[]} */
    const numbers = [];
    let value = 0;
    for (const byte of bytes) {
      value = value * 128 + (byte & 0x7f);
      if (!Number.isSafeInteger(value)) throw new Error("invalid identifier");
      if (byte & 0x80) continue;
      if (numbers.length) numbers.push(value);
      else { const first = Math.min(2, Math.floor(value / 40)); numbers.push(first, value - 40 * first); }
      value = 0;
    }
    return numbers.join(".");
  }

  /** @param {Part} part */
  text(part) {
    const bytes = this.content(part);
    if (part.tag === 0x0c) return new TextDecoder().decode(bytes);
    if (part.tag === 0x1e) return new TextDecoder("utf-16be").decode(bytes);
    if (part.tag === 0x1c) return Array.from({ length: bytes.length >> 2 }, (_, index) => codePoint(bytes.subarray(4 * index, 4 * index + 4))).join("");
    return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  }

  /** @param {Part | undefined} part A Name. */
  name(part) {
    return this.members(part).flatMap((set) => this.members(set, SET)).map((pair) => {
      const [type, value] = this.members(pair), oid = this.oid(type);
      if (!value) throw new Error("truncated");
      return `${Object.hasOwn(ATTRIBUTES, oid) ? ATTRIBUTES[oid] : oid}=${this.text(value).replace(/[,+"\\<>;]/g, "\\$&")}`;
    }).join(", ");
  }

  /** @param {Part | undefined} part A Time. @returns {number} */
  time(part) {
    if (part?.tag !== 0x17 && part?.tag !== 0x18) throw new Error("unexpected element");
    const match = /^(\d{2}|\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?Z$/.exec(this.text(part));
    if (!match || (match[1].length === 4) !== (part.tag === 0x18)) throw new Error("invalid time");
    const [year, month, day, hour, minute, second] = match.slice(1).map((digits) => Number(digits ?? 0));
    const time = new Date(0);
    time.setUTCFullYear(part.tag === 0x18 ? year : year < 50 ? 2000 + year : 1900 + year, month - 1, day);
    return time.setUTCHours(hour, minute, second);
  }

  /** @param {Part | undefined} part A SubjectPublicKeyInfo. */
  key(part) {
    const [algorithm, bits] = this.members(part), [type, parameters] = this.members(algorithm), oid = this.oid(type);
    this.expect(bits, BITS);
    if (RSA.includes(oid)) {
      const [modulus] = this.members(this.part(bits.start + 1, bits.end));
      const bytes = this.content(this.expect(modulus, INTEGER)), first = bytes.findIndex((byte) => byte !== 0);
      return `RSA ${first < 0 ? 0 : (bytes.length - first) * 8 - Math.clz32(bytes[first]) + 24}`;
    }
    if (oid === ELLIPTIC) {
      const curve = parameters?.tag === OID ? this.oid(parameters) : "";
      return `ECDSA ${Object.hasOwn(CURVES, curve) ? CURVES[curve] : curve}`.trim();
    }
    return Object.hasOwn(KEYS, oid) ? KEYS[oid] : oid;
  }

  /** @param {Part | undefined} part Extensions. @returns {Pick<Certificate, "names" | "usages" | "authority">} */
  extensions(part) {
    const found = { names: /** @type {string[]} */ ([]), usages: /** @type {string[]} */ ([]), authority: false };
    for (const extension of part ? this.members(part) : []) {
      const [type, ...rest] = this.members(extension), oid = this.oid(type);
      if (![ALTERNATIVE_NAMES, KEY_USAGE, EXTENDED_KEY_USAGE, CONSTRAINTS].includes(oid)) continue;
      const octets = this.expect(rest.at(-1), OCTETS), value = this.part(octets.start, octets.end);
      if (oid === ALTERNATIVE_NAMES) found.names.push(...this.members(value).slice(0, MAX_NAMES).map((one) => this.generalName(one)));
      else if (oid === KEY_USAGE) found.usages.unshift(...this.keyUsages(this.expect(value, BITS)));
      else if (oid === EXTENDED_KEY_USAGE) found.usages.push(...this.members(value).map((one) => this.oid(one)).map((one) => (Object.hasOwn(EXTENDED_USAGES, one) ? EXTENDED_USAGES[one] : one)));
      else { const [first] = this.members(value); found.authority = first?.tag === BOOLEAN && this.bytes[first.start] !== 0; }
    }
    return found;
  }

  /** @param {Part} part */
  keyUsages(part) {
    const bytes = this.content(part).subarray(1);
    return KEY_USAGES.filter((name, index) => ((bytes[index >> 3] ?? 0) >> (7 - (index & 7))) & 1);
  }

  /** @param {Part} part */
  generalName(part) {
    if (part.tag === 0x82) return `DNS:${this.text(part)}`;
    if (part.tag === 0x81) return `email:${this.text(part)}`;
    if (part.tag === 0x86) return `URI:${this.text(part)}`;
    if (part.tag === 0x87) return `IP:${addressText(this.content(part))}`;
    if (part.tag === 0xa4) return `DirName:${this.name(this.part(part.start, part.end))}`;
    return "other";
  }
}

/** @param {Uint8Array} bytes Four of them. */
function codePoint(bytes) {
  const value = ((bytes[0] * 256 + bytes[1]) * 256 + bytes[2]) * 256 + bytes[3];
  return value <= 0x10ffff ? String.fromCodePoint(value) : "\ufffd";
}

/** @param {Uint8Array} bytes An address of IPv4 or IPv6. */
export function addressText(bytes) {
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.length !== 16) return "invalid";
  const groups = Array.from({ length: 8 }, (_, index) => (bytes[2 * index] * 256 + bytes[2 * index + 1]).toString(16));
  const text = groups.join(":"), zeros = [...text.matchAll(/(?<![0-9a-f])0(?::0)+(?![0-9a-f])/g)].sort((a, b) => b[0].length - a[0].length)[0];
  if (!zeros) return text;
  return `${text.slice(0, zeros.index).replace(/:$/, "")}::${text.slice(zeros.index + zeros[0].length).replace(/^:/, "")}`;
}

/**
 * Read a certificate; throw an Error if it is none.
 *
 * @param {Uint8Array} bytes DER.
 * @returns {Certificate}
 */
export function readCertificate(bytes) {
  const der = new DER(bytes), [toBeSigned] = der.members(der.part(0, bytes.length)), members = der.members(toBeSigned);
  if (members[0]?.tag === 0xa0) members.shift();
  const [serial, , issuer, validity, subject, key, ...rest] = members, [from, until] = der.members(validity);
  const wrapper = rest.find(({ tag }) => tag === 0xa3);
  return {
    subject: der.name(subject), issuer: der.name(issuer), serial: Array.from(der.content(der.expect(serial, INTEGER)), (byte) => byte.toString(16).padStart(2, "0")).join("").replace(/^00(?=.)/, ""),
    from: der.time(from), until: der.time(until), key: der.key(key), ...der.extensions(wrapper && der.part(wrapper.start, wrapper.end)),
  };
}

/**
 * Read a certificate request (PKCS #10); throw an Error if it is none.
 *
 * @param {Uint8Array} bytes DER.
 * @returns {Certificate}
 */
export function readRequest(bytes) {
  const der = new DER(bytes), [info] = der.members(der.part(0, bytes.length)), [, subject, key, attributes] = der.members(info);
  let extensions;
  for (const attribute of attributes?.tag === 0xa0 ? der.parts(attributes) : []) {
    const [type, values] = der.members(attribute);
    if (der.oid(type) === EXTENSION_REQUEST) [extensions] = der.members(values, SET);
  }
  return { subject: der.name(subject), issuer: "", serial: "", from: NaN, until: NaN, key: der.key(key), ...der.extensions(extensions) };
}

/**
 * Return the contents of the PEM blocks with a label.
 *
 * @param {string} text
 * @param {string} label "CERTIFICATE".
 * @returns {(Uint8Array | null)[]} null for a block that is not base64.
 */
export function pemBlocks(text, label) {
  const begin = `-----BEGIN ${label}-----`, end = `-----END ${label}-----`, found = [];
  for (let at = text.indexOf(begin); at >= 0 && found.length < MAX_BLOCKS; at = text.indexOf(begin, at)) {
    const start = at + begin.length, stop = text.indexOf(end, start);
    if (stop < 0) break;
    try { found.push(Uint8Array.from(atob(text.slice(start, stop)), (character) => character.charCodeAt(0))); } catch { found.push(null); }
    at = stop + end.length;
  }
  return found;
}

/**
 * Return the certificates or requests in PEM.
 *
 * @param {string} text
 * @param {boolean} [requests]
 * @returns {(Certificate | null)[]} null for one that cannot be read.
 */
export function readPEM(text, requests = false) {
  const blocks = requests ? [...pemBlocks(text, "CERTIFICATE REQUEST"), ...pemBlocks(text, "NEW CERTIFICATE REQUEST")] : pemBlocks(text, "CERTIFICATE");
  return blocks.map((bytes) => {
    try { return bytes && (requests ? readRequest : readCertificate)(bytes); } catch { return null; }
  });
}
