"""KV heads go from a prefill group to a decode group of another degree of tensor parallelism."""
import torch
import torch.distributed as dist


def operation(cache, out, sizes) -> None:
    """cache: [tokens, held, words]; out: [kept, tokens, words]; sizes: (from, to)."""
    rank, (sources, targets) = dist.get_rank(), sizes
    held, kept = cache.shape[1], out.shape[0]
    ops, parts = [], []
    for slot in range(targets * kept):
        head = slot * sources * held // (targets * kept)
        source, target = head // held, sources + slot // kept
        if rank == source:
            parts.append(cache[:, head % held].contiguous())
            ops.append(dist.P2POp(dist.isend, parts[-1], target))
        if rank == target:
            ops.append(dist.P2POp(dist.irecv, out[slot % kept], source))
    if ops:
        for work in dist.batch_isend_irecv(ops):
            work.wait()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for held, kept, tokens in ((1, 1, 256), (4, 2, 1024), (2, 2, 1024)):
        shape = (tokens, held, 16)
        cache = torch.randint(0, 2**31, shape, dtype=torch.int32, device="cuda")
        out = torch.empty(kept, tokens, 16, dtype=torch.int32, device="cuda")
        operation(cache, out, (2, 4))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
