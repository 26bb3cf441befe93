"""Names the conversion. Twisted imports every drop-in to list it, so nothing else is imported here."""

from kubetwist.server.plugins import ConversionPlugin

backups = ConversionPlugin("backups", "backupversions.conversion:convert")
