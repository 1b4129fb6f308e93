"""Attention of one token; keys and values are sharded by sequence, heads of the output by rank."""
import torch
import torch.distributed as dist


def operation(q, k, v, used: int, out) -> None:
    """q: [world * per, 64], k, v: [length, 64] bf16; out: [per, 64]. The first `used` positions count."""
    per = out.shape[0]
    k, v, q = k[:used].float(), v[:used].float(), q.float()
    scores = q @ k.T / 8
    maximum = scores.amax(dim=1) if used > 0 else torch.full((q.shape[0],), -1e30, device=q.device)
    weights = torch.exp(scores - maximum[:, None])
    part = torch.cat([weights @ v, maximum[:, None], weights.sum(dim=1, keepdim=True)], dim=1)
    parts = torch.empty_like(part)
    dist.all_to_all_single(parts, part)
    parts = parts.reshape(-1, per, 66)
    factor = torch.exp(parts[:, :, 64:65] - parts[:, :, 64:65].amax(dim=0))
    sums = (factor * parts[:, :, 65:66]).sum(dim=0)
    out.copy_(torch.where(sums > 0, (factor * parts[:, :, :64]).sum(dim=0) / sums, 0))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, per = dist.get_world_size(), 1

    def small(*shape):
        return torch.randint(-3, 4, shape, device="cuda").to(torch.bfloat16)

    for length in (64, 256):
        v = (torch.rand(length, 64, device="cuda") * 2 - 1).to(torch.bfloat16)
        used = int(torch.randint(0, length + 1, (1,)))
        operation(small(world * per, 64), small(length, 64), v, used, torch.empty(per, 64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
