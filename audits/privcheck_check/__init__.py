"""Independent checker of privcheck's certificates: standard library only, written from docs/certificates.md."""
