"""Packed QKV from sequence shards to head shards; ranks in groups of `share` have the same K and V."""
import torch
import torch.distributed as dist


def operation(qkv: torch.Tensor, q_heads: int, kv_heads: int, share: int):
    world, tokens, dim = dist.get_world_size(), qkv.shape[0], qkv.shape[2]
    groups = -(-world // share)
    q, k, v = qkv.split([world * q_heads, groups * kv_heads, groups * kv_heads], dim=1)
    group_of = [rank // share for rank in range(world)]
    sent = torch.cat(
        [
            q.reshape(tokens, world, q_heads, dim),
            k.reshape(tokens, groups, kv_heads, dim)[:, group_of],
            v.reshape(tokens, groups, kv_heads, dim)[:, group_of],
        ],
        dim=2,
    ).transpose(0, 1).contiguous()
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    return received.flatten(0, 1).split([q_heads, kv_heads, kv_heads], dim=1)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, q_heads, kv_heads, share = dist.get_world_size(), 2, 1, 2
    heads = world * q_heads + 2 * -(-world // share) * kv_heads
    for tokens, dim in ((16, 64), (32, 128)):
        qkv = torch.randn(tokens, heads, dim, dtype=torch.bfloat16, device="cuda")
        operation(qkv, q_heads, kv_heads, share)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
