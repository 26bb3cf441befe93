import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import test from "node:test";

import { addressText, pemBlocks, readCertificate, readPEM, readRequest } from "../../../kubetwist/ui/static/lib/x509.js";
import * as made from "./certificates.js";
import { forSeeds } from "./random.js";

const { AUTHORITY, BARE, CLIENT, REQUEST, SERVER } = made;
const CURVES = { prime256v1: "P-256", secp384r1: "P-384" };
const der = (pem) => pemBlocks(pem, "CERTIFICATE")[0];

test("certificates have what OpenSSL finds in them", () => {
  for (const pem of [AUTHORITY, SERVER, CLIENT, BARE]) {
    const found = readCertificate(der(pem)), expected = new X509Certificate(pem);
    assert.equal(found.subject, (expected.subject ?? "").replaceAll("\n", ", "));
    assert.equal(found.issuer, expected.issuer.replaceAll("\n", ", "));
    assert.equal(found.serial.toUpperCase(), expected.serialNumber);
    assert.deepEqual([found.from, found.until], [Number(expected.validFromDate), Number(expected.validToDate)]);
    assert.equal(found.authority, expected.ca);
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = expected.publicKey;
    assert.equal(found.key, { rsa: `RSA ${details.modulusLength}`, ec: `ECDSA ${CURVES[details.namedCurve]}`, ed25519: "Ed25519" }[type]);
  }
});

test("names, usages and times are in readable forms", () => {
  const server = readCertificate(der(SERVER));
  assert.deepEqual(server.names, ["DNS:example.com", "DNS:*.example.com", "IP:10.0.0.1", "IP:2001:db8::1:0:0:1", "IP:::1", "email:a@example.com", "URI:spiffe://cluster/ns", "DirName:CN=dir"]);
  assert.deepEqual(server.usages, ["digital signature", "key encipherment", "server auth", "client auth"]);
  assert.equal(server.subject, "C=DE, CN=example.com");
  assert.equal(new Date(readCertificate(der(AUTHORITY)).until).toISOString(), "2060-01-01T12:34:56.000Z");
  const client = readCertificate(der(CLIENT));
  assert.equal(client.subject, "CN=kubernetes-admin, O=system:masters, L=Bümplitz, DC=org");
  assert.deepEqual(client.usages, ["key agreement", "decipher only"]);
  assert.deepEqual(readCertificate(der(BARE)).names, []);
});

test("a request has its extensions", () => {
  const [found] = readPEM(REQUEST, true);
  assert.deepEqual([found.subject, found.names, found.key, found.usages], ["CN=system:node:a, O=system:nodes", ["DNS:a", "IP:10.0.0.2"], "ECDSA P-256", ["digital signature"]]);
  assert.ok(Number.isNaN(found.until));
  assert.throws(() => readRequest(der(SERVER)));
  assert.throws(() => readCertificate(pemBlocks(REQUEST, "CERTIFICATE REQUEST")[0]));
});

test("addresses of IPv6 are shortened once", () => {
  const of = (...groups) => addressText(Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 255])));
  assert.equal(of(0, 0, 0, 0, 0, 0, 0, 0), "::");
  assert.equal(of(1, 0, 0, 2, 0, 0, 0, 3), "1:0:0:2::3");
  assert.equal(of(0x10, 0, 0x20, 3, 4, 5, 6, 7), "10:0:20:3:4:5:6:7");
  assert.equal(addressText(new Uint8Array(5)), "invalid");
});

test("bundles have all their certificates, also after ones that cannot be read", () => {
  const bundle = `# comment\n${SERVER}-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n${AUTHORITY}-----BEGIN CERTIFICATE-----\ntruncated`;
  assert.deepEqual(readPEM(bundle).map((one) => one && one.authority), [false, null, true]);
  assert.deepEqual(readPEM(""), []);
});

test("many beginnings of blocks without an end are read in linear time", () => {
  const text = "-----BEGIN CERTIFICATE-----\n".repeat(40_000);
  assert.deepEqual(readPEM(text), []);
  assert.equal(readPEM("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".repeat(1000)).length, 200);
});

test("no bytes, however odd, do more than cause an error", () => {
  const originals = Object.values(made).map((pem) => pemBlocks(pem, "CERTIFICATE")[0] ?? pemBlocks(pem, "CERTIFICATE REQUEST")[0]);
  let read = 0;
  forSeeds(3000, (random) => {
    const bytes = originals[Math.floor(random() * originals.length)].slice();
    for (let count = 1 + Math.floor(random() * 4); count > 0; count--) bytes[Math.floor(random() * Math.min(bytes.length, random() < 0.5 ? 60 : bytes.length))] = Math.floor(random() * 256);
    const cut = random() < 0.2 ? bytes.subarray(0, Math.floor(random() * bytes.length)) : bytes;
    for (const reader of [readCertificate, readRequest]) {
      try {
        const found = reader(cut);
        assert.equal(typeof found.subject, "string");
        assert.ok(found.names.length <= 200);
        read++;
      } catch (error) { assert.ok(error instanceof Error && !(error instanceof TypeError) && !(error instanceof RangeError) && error.name !== "AssertionError", String(error)); }
    }
  });
  assert.ok(read > 100);
});

test("what claims to be large is refused", () => {
  assert.throws(() => readCertificate(new Uint8Array(65537)), /too large/);
  assert.throws(() => readCertificate(Uint8Array.from([0x30, 0x84, 0xff, 0xff, 0xff, 0xff])), /invalid length/);
  assert.throws(() => readCertificate(Uint8Array.from([0x30, 0x80, 0, 0])), /indefinite/);
  const nested = new Uint8Array(20_000).fill(0x05).map((byte, index) => (index % 2 ? 0 : byte));
  assert.throws(() => readCertificate(Uint8Array.from([0x30, 0x82, nested.length >> 8, nested.length & 255, ...nested])), /too many/);
});
