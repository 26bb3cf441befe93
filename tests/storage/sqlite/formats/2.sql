PRAGMA application_id = 1802794867;
PRAGMA user_version = 2;
PRAGMA journal_mode = WAL;
CREATE TABLE log (id INTEGER PRIMARY KEY /* revision << 16 | place in the transaction */, key TEXT NOT NULL, previous INTEGER NOT NULL /* revision */, expires REAL /* seconds since 1970 */, value BLOB /* NULL: deleted */, sum INTEGER /* the row's checksum; NULL: written in format 1 */);
CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO state VALUES ('clock', 11), ('compacted', 4), ('cleaned', 131073);
-- Revision 2 made two keys, the first one in format 1; one of them was replaced at 3 and deleted at 4; 3 is compacted, but not cleaned yet.
INSERT INTO log VALUES (131072, '/registry/configmaps/default/kept', 0, NULL, X'7B22646174612226', NULL);
INSERT INTO log VALUES (131073, '/registry/configmaps/default/gone', 0, NULL, X'31', 1639623717583384503);
INSERT INTO log VALUES (196608, '/registry/configmaps/default/gone', 2, NULL, X'32', 8416271476781858317);
INSERT INTO log VALUES (262144, '/registry/configmaps/default/gone', 3, NULL, NULL, 5610069999814180864);
-- One transaction of two, one with a time to live; then it is written again, without one.
INSERT INTO log VALUES (327680, '/registry/events/default/e', 0, 1000010.0, X'65', 5998455233466497626);
INSERT INTO log VALUES (327681, '/registry/events/default/f', 0, 1000020.5, X'66', 9077779283238398944);
INSERT INTO log VALUES (393216, '/registry/events/default/f', 5, NULL, X'6666', 1580414841723493043);
-- 7 to 11 were given, and their writes failed.
