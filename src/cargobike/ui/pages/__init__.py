"""Style sheets and scripts of the pages that `ui` writes: plain files, sent as they are."""
