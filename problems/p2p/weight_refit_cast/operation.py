"""Flat f32 shards of a layer become tensor-parallel bf16 weights: all to all, then reordering."""
import torch
import torch.distributed as dist


def operation(inp, version, norm, qkv, versions, q, kv, dim) -> None:
    """inp: [shard] f32; norm: [cols], qkv: [(q + 2 * kv) * dim, cols] bf16; versions: [world]."""
    rank, world, cols = dist.get_rank(), dist.get_world_size(), norm.numel()
    flat = torch.empty(world * inp.numel(), dtype=torch.bfloat16, device=inp.device)
    dist.all_gather_into_tensor(flat, inp.to(torch.bfloat16))
    dist.all_gather_into_tensor(versions, version)
    rows = flat[: (1 + world * (q + 2 * kv) * dim) * cols].view(-1, cols)
    norm.copy_(rows[0])
    heads = (world * q * dim, world * kv * dim, world * kv * dim)
    parts = [part.chunk(world)[rank] for part in rows[1:].split(heads)]
    qkv.copy_(torch.cat(parts))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, q, kv, dim = dist.get_world_size(), 2, 1, 64
    for cols in (128, 1024):
        total = (1 + world * (q + 2 * kv) * dim) * cols
        inp = torch.randn(8 * -(-total // (8 * world)), device="cuda")
        version = torch.zeros(1, dtype=torch.int32, device="cuda")
        norm = torch.empty(cols, dtype=torch.bfloat16, device="cuda")
        qkv = torch.empty((q + 2 * kv) * dim, cols, dtype=torch.bfloat16, device="cuda")
        versions = torch.empty(world, dtype=torch.int32, device="cuda")
        operation(inp, version, norm, qkv, versions, q, kv, dim)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
