"""What models run on. One file per kind of device; everything else asks the ``Device`` that ``registry`` gives."""
