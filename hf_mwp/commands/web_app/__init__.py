"""Web page of `hf-mwp app`, which only this machine can open."""
