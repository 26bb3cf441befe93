// Certificates in objects, explained: of Secrets, ConfigMaps, certificate signing requests, and authorities of webhooks.

import { bytesOf } from "../data.js";
import { kindKey } from "../resources.js";
import { texts } from "../texts.js";
import { readPEM } from "../x509.js";
import { code, fieldsSection, listOf, since, tableSection } from "./model.js";

/** @typedef {import("../types.js").KubeObject} KubeObject */
/** @typedef {import("../x509.js").Certificate} Certificate */
/** @typedef {import("./model.js").Section} Section */
/** @typedef {import("./model.js").Value} Value */
/** @typedef {{ title: string, pem: string, request?: boolean }} Source A place with certificates. */

const t = texts.describe;
const DAY = 24 * 3600 * 1000, WARNING_DAYS = 30;
// Certificates of one place that are shown, and the depth and number of fields in which authorities are searched.
const MAX_SHOWN = 20, MAX_DEPTH = 12, MAX_FIELDS = 5000;
const BEGIN = "-----BEGIN CERTIFICATE-----";

/** @param {string} encoded Base64. */
const decoded = (encoded) => Array.from(bytesOf(encoded), (byte) => String.fromCharCode(byte)).join("");

/** @param {any} value @param {string} path @param {number} depth @param {{ left: number }} budget @returns {Source[]} The values of the fields caBundle. */
function bundles(value, path, depth, budget) {
  if (value === null || typeof value !== "object" || depth > MAX_DEPTH) return [];
  /** @type {Source[]} */
  const found = [];
  for (const [name, member] of Object.entries(value)) {
    if (--budget.left < 0) return found;
    const here = Array.isArray(value) ? `${path}[${name}]` : path ? `${path}.${name}` : name;
    if (name === "caBundle" && typeof member === "string") found.push({ title: here, pem: decoded(member) });
    else found.push(...bundles(member, here, depth + 1, budget));
  }
  return found;
}

/**
 * Return the places of an object with certificates.
 *
 * @param {any} object
 * @returns {Source[]}
 */
export function certificateSources(object) {
  const { data = {}, spec = {}, status = {} } = object;
  switch (kindKey(object)) {
    case "/Secret": return Object.keys(data).filter((key) => key.endsWith(".crt")).sort().map((title) => ({ title, pem: decoded(String(data[title])) }));
    case "/ConfigMap": return Object.keys(data).sort().filter((key) => String(data[key]).includes(BEGIN)).map((title) => ({ title, pem: String(data[title]) }));
    case "certificates.k8s.io/CertificateSigningRequest": return [
      { title: t.request, pem: decoded(String(spec.request ?? "")), request: true },
      ...(status.certificate ? [{ title: t.certificate, pem: decoded(String(status.certificate)) }] : []),
    ];
    default: return bundles({ webhooks: object.webhooks, spec }, "", 0, { left: MAX_FIELDS });
  }
}

/** @param {Certificate} certificate @param {number} now @returns {Value} When it expires, with a warning. */
export function validity({ from, until }, now) {
  if (Number.isNaN(until)) return "";
  const date = new Date(until).toISOString().slice(0, 10), days = Math.floor((until - now) / DAY);
  if (from > now) return { text: t.validFrom(new Date(from).toISOString().slice(0, 10)), tone: "bad" };
  if (until < now) return { text: t.expired(date, Math.floor((now - until) / DAY)), tone: "bad" };
  return { text: t.expires(date, days), tone: days < WARNING_DAYS ? "waiting" : "good", title: `${new Date(from).toISOString()} – ${new Date(until).toISOString()}` };
}

/** @param {Certificate} one */
const issuerOf = ({ subject, issuer }) => (issuer === "" ? "" : issuer === subject ? t.selfSigned : issuer);

/** @param {Certificate} one */
const usagesOf = ({ usages, authority }) => [...(authority ? [t.authority] : []), ...usages].join(", ");

/**
 * Return the sections that explain certificates.
 *
 * @param {KubeObject} object
 * @param {number} now Milliseconds since 1970.
 * @returns {(Section | null)[]}
 */
export function certificateSections(object, now) {
  return certificateSources(object).flatMap(({ title, pem, request = false }) => {
    const found = readPEM(pem, request);
    const heading = request || title === t.certificate ? title : t.certificateOf(title);
    if (!found.length) return object.kind === "Secret" || request ? [fieldsSection(heading, [[t.content, { text: t.unreadable, tone: "waiting" }]])] : [];
    const [one] = found;
    if (found.length === 1 && one) {
      return [fieldsSection(heading, [
        [t.subject, one.subject || t.none], [t.alternativeNames, one.names], [t.issuer, issuerOf(one)], [t.validity, validity(one, now)],
        [t.key, one.key], [t.usages, usagesOf(one)], [t.serial, code(one.serial)],
      ])];
    }
    const rows = found.slice(0, MAX_SHOWN).map((each) => (each
      ? [each.subject, each.names.join(", "), issuerOf(each), validity(each, now), each.key, usagesOf(each)] : [{ text: t.unreadable, tone: "waiting" }, "", "", "", "", ""]));
    const more = found.length - MAX_SHOWN;
    return [tableSection(heading, t.certificateColumns, more > 0 ? [...rows, [t.moreCertificates(more), "", "", "", "", ""]] : rows)];
  });
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export const signingRequestSections = ({ spec = {}, status = {} }) => {
  const decided = listOf(status.conditions).find((one) => ["Approved", "Denied"].includes(one.type));
  return [fieldsSection(t.status, [
    [t.decision, decided ? { text: decided.type, tone: decided.type === "Approved" ? "good" : "bad" } : { text: t.undecided, tone: "waiting" }],
    [t.signer, spec.signerName], [t.requestor, spec.username], [t.requestorGroups, spec.groups], [t.usages, (spec.usages ?? []).join(", ")],
    [t.duration, spec.expirationSeconds === undefined ? "" : t.seconds(spec.expirationSeconds)], [t.decidedAt, since(decided?.lastUpdateTime)],
  ])];
};
