"""The group storagemigration.k8s.io: StorageVersionMigrations."""
